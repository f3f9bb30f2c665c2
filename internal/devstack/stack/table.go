package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const typeTable = "AWS::DynamoDB::Table"

type tableProperties struct {
	TableName              text
	BillingMode            text
	AttributeDefinitions   []struct{ AttributeName, AttributeType text }
	KeySchema              []keyElement
	GlobalSecondaryIndexes []struct {
		IndexName  text
		KeySchema  []keyElement
		Projection struct {
			ProjectionType   text
			NonKeyAttributes []text
		}
		WarmThroughput, OnDemandThroughput, ContributorInsightsSpecification ignored // capacity is without limit here
	}
	StreamSpecification     *struct{ StreamViewType text }
	TimeToLiveSpecification *struct {
		AttributeName text
		Enabled       flag
	}

	WarmThroughput, OnDemandThroughput, TableClass         ignored // capacity is without limit here, and free
	PointInTimeRecoverySpecification                       ignored // memory has no backup
	DeletionProtectionEnabled, SSESpecification            ignored // the stack is gone with its process
	ContributorInsightsSpecification, Tags, ResourcePolicy ignored // nobody looks
}

type keyElement struct{ AttributeName, KeyType text }

func (c *creation) makeTable(ctx context.Context, id string, properties any) (Resource, error) {
	var p tableProperties
	if err := decode(properties, &p); err != nil {
		return Resource{}, err
	}
	return c.table(ctx, c.physicalName(p.TableName, id), &p)
}

func (c *creation) table(ctx context.Context, name string, p *tableProperties) (Resource, error) {
	if p.BillingMode != "PAY_PER_REQUEST" {
		return Resource{}, fmt.Errorf("BillingMode %q: the local stack knows PAY_PER_REQUEST only", p.BillingMode)
	}
	in := p.createInput(name)
	if err := c.ensureTable(ctx, in); err != nil {
		return Resource{}, err
	}
	c.notePartitionKeys(in)
	table, err := c.activeTable(ctx, *in.TableName)
	if err != nil {
		return Resource{}, err
	}
	if p.TimeToLiveSpecification != nil && p.TimeToLiveSpecification.Enabled {
		if err := c.ensureTTL(ctx, *in.TableName, string(p.TimeToLiveSpecification.AttributeName)); err != nil {
			return Resource{}, err
		}
	}
	c.stack.TableARNs[*in.TableName] = aws.ToString(table.TableArn)
	r := Resource{Ref: *in.TableName, Attributes: map[string]string{"Arn": aws.ToString(table.TableArn)}}
	if table.LatestStreamArn != nil {
		r.Attributes["StreamArn"] = *table.LatestStreamArn
	}
	return r, nil
}

// notePartitionKeys keeps the names of the partition keys of a table and its indexes.
func (c *creation) notePartitionKeys(in *dynamodb.CreateTableInput) {
	c.stack.PartitionKeys[*in.TableName] = partitionKey(in.KeySchema)
	for _, index := range in.GlobalSecondaryIndexes {
		c.stack.PartitionKeys[*in.TableName+"/"+*index.IndexName] = partitionKey(index.KeySchema)
	}
}

func partitionKey(schema []types.KeySchemaElement) string {
	for _, e := range schema {
		if e.KeyType == types.KeyTypeHash {
			return *e.AttributeName
		}
	}
	return ""
}

func (p *tableProperties) createInput(name string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: keySchema(p.KeySchema)}
	for _, a := range p.AttributeDefinitions {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(string(a.AttributeName)), AttributeType: types.ScalarAttributeType(a.AttributeType),
		})
	}
	for _, g := range p.GlobalSecondaryIndexes {
		index := types.GlobalSecondaryIndex{
			IndexName: aws.String(string(g.IndexName)), KeySchema: keySchema(g.KeySchema),
			Projection: &types.Projection{ProjectionType: types.ProjectionType(g.Projection.ProjectionType)},
		}
		for _, a := range g.Projection.NonKeyAttributes {
			index.Projection.NonKeyAttributes = append(index.Projection.NonKeyAttributes, string(a))
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, index)
	}
	if s := p.StreamSpecification; s != nil {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(s.StreamViewType)}
	}
	return in
}

func keySchema(elements []keyElement) []types.KeySchemaElement {
	var out []types.KeySchemaElement
	for _, e := range elements {
		out = append(out, types.KeySchemaElement{AttributeName: aws.String(string(e.AttributeName)), KeyType: types.KeyType(e.KeyType)})
	}
	return out
}

// ensureTable creates the table, or accepts one that is there and is the same.
func (c *creation) ensureTable(ctx context.Context, in *dynamodb.CreateTableInput) error {
	db := c.options.Clients.DynamoDB
	_, err := db.CreateTable(ctx, in)
	var inUse *types.ResourceInUseException
	if !errors.As(err, &inUse) {
		return err
	}
	out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: in.TableName})
	if err != nil {
		return err
	}
	if want, got := shape(in), tableShape(out.Table); want != got {
		return fmt.Errorf("table %s exists with other keys, indexes or stream: delete it, or use another DynamoDB (want %s, is %s)", *in.TableName, want, got)
	}
	c.reused = append(c.reused, *in.TableName)
	return nil
}

// shape is what must agree for a table to be the declared one, as text.
func shape(in *dynamodb.CreateTableInput) string {
	var indexes []string
	for _, g := range in.GlobalSecondaryIndexes {
		indexes = append(indexes, indexShape(*g.IndexName, g.KeySchema, g.Projection, in.AttributeDefinitions))
	}
	return shapeText(in.KeySchema, in.AttributeDefinitions, indexes, in.StreamSpecification)
}

func tableShape(t *types.TableDescription) string {
	var indexes []string
	for _, g := range t.GlobalSecondaryIndexes {
		indexes = append(indexes, indexShape(*g.IndexName, g.KeySchema, g.Projection, t.AttributeDefinitions))
	}
	return shapeText(t.KeySchema, t.AttributeDefinitions, indexes, t.StreamSpecification)
}

func shapeText(keys []types.KeySchemaElement, attributes []types.AttributeDefinition, indexes []string, stream *types.StreamSpecification) string {
	view := "no stream"
	if stream != nil && aws.ToBool(stream.StreamEnabled) {
		view = string(stream.StreamViewType)
	}
	slices.Sort(indexes)
	return fmt.Sprintf("%s [%s] %s", keysText(keys, attributes), strings.Join(indexes, " "), view)
}

func indexShape(name string, keys []types.KeySchemaElement, projection *types.Projection, attributes []types.AttributeDefinition) string {
	kind := types.ProjectionTypeAll
	if projection != nil {
		kind = projection.ProjectionType
	}
	return fmt.Sprintf("%s=%s/%s", name, keysText(keys, attributes), kind)
}

func keysText(keys []types.KeySchemaElement, attributes []types.AttributeDefinition) string {
	var out []string
	for _, k := range keys {
		for _, a := range attributes {
			if *a.AttributeName == *k.AttributeName {
				out = append(out, fmt.Sprintf("%s:%s:%s", *k.AttributeName, a.AttributeType, k.KeyType))
			}
		}
	}
	return strings.Join(out, ",")
}

func (c *creation) activeTable(ctx context.Context, name string) (*types.TableDescription, error) {
	waiter := dynamodb.NewTableExistsWaiter(c.options.Clients.DynamoDB, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second
	})
	out, err := waiter.WaitForOutput(ctx, &dynamodb.DescribeTableInput{TableName: &name}, time.Minute)
	if err != nil {
		return nil, err
	}
	return out.Table, nil
}

func (c *creation) ensureTTL(ctx context.Context, name, attribute string) error {
	db := c.options.Clients.DynamoDB
	out, err := db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		return err
	}
	if d := out.TimeToLiveDescription; d != nil && d.TimeToLiveStatus == types.TimeToLiveStatusEnabled && aws.ToString(d.AttributeName) == attribute {
		return nil
	}
	_, err = db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)},
	})
	return err
}
