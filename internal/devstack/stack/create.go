package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"dakghar/internal/devstack/iam"
)

// Clients are the services that a stack is created in.
type Clients struct {
	DynamoDB *dynamodb.Client
	SQS      *sqs.Client
	S3       *s3.Client
	KMS      *kms.Client
}

// Options describe a stack to create.
type Options struct {
	TemplatePath string
	Name         string            // of the stack; resources are named after it
	Region       string            // default us-east-1
	Parameters   map[string]string // instead of the template's defaults
	Clients      Clients
	Logf         func(format string, args ...any)
}

// Create reads the template and creates its resources. Tables that exist already
// are used as they are when their keys, indexes and stream are those declared.
func Create(ctx context.Context, o Options) (*Stack, error) {
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	t, err := read(o)
	if err != nil {
		return nil, err
	}
	c := newCreation(o)
	if err := c.run(ctx, t); err != nil {
		return nil, fmt.Errorf("template %s: %w", o.TemplatePath, err)
	}
	return c.stack, nil
}

// CreateTables creates some tables of a template and nothing else, for a test
// that needs no more: names says which, by logical id, and what to call each.
func CreateTables(ctx context.Context, db *dynamodb.Client, templatePath string, names map[string]string) error {
	o := Options{TemplatePath: templatePath, Name: "tables", Region: "us-east-1", Clients: Clients{DynamoDB: db}, Logf: func(string, ...any) {}}
	t, err := read(o)
	if err != nil {
		return err
	}
	c := newCreation(o)
	for _, id := range slices.Sorted(maps.Keys(names)) {
		d, ok := t.resources[id]
		if !ok || d.kind != typeTable {
			return fmt.Errorf("template %s declares no table %s", templatePath, id)
		}
		var p tableProperties
		if err := decode(d.properties, &p); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		if _, err := c.table(ctx, names[id], &p); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}

func read(o Options) (*template, error) {
	raw, err := os.ReadFile(o.TemplatePath)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	t, err := parse(raw, settings{stackName: o.Name, region: o.Region, parameters: o.Parameters})
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", o.TemplatePath, err)
	}
	return t, nil
}

func newCreation(o Options) *creation {
	return &creation{options: o, marks: marks(), pending: map[string]declared{}, gateway: newGateway(),
		roles: map[string]*iam.Role{}, attached: map[*iam.Role][]attachment{}, roleARNs: map[string]string{}, stack: &Stack{
			Name: o.Name, Region: o.Region, Resources: map[string]Resource{}, Outputs: map[string]string{}, Functions: map[string]Function{},
			Roles: map[string]iam.Role{}, TableARNs: map[string]string{}, PartitionKeys: map[string]string{}, BucketKeys: map[string]string{},
		}}
}

// creation is one run of Create.
type creation struct {
	options Options
	marks   *regexp.Regexp
	pending map[string]declared // not created yet
	gateway *gateway
	reused  []string // tables that were there before
	stack   *Stack

	roles    map[string]*iam.Role // by physical name
	attached map[*iam.Role][]attachment
	roleARNs map[string]string // by function
}

// maker creates a resource of one type from its properties.
type maker func(c *creation, ctx context.Context, id string, properties any) (Resource, error)

func makers() map[string]maker {
	return map[string]maker{
		typeTable:       (*creation).makeTable,
		typeQueue:       (*creation).makeQueue,
		typeBucket:      (*creation).makeBucket,
		typeKey:         (*creation).makeKey,
		typeFunction:    (*creation).makeFunction,
		typeAPI:         (*creation).makeAPI,
		typeStage:       (*creation).makeStage,
		typeIntegration: (*creation).makeIntegration,
		typeRoute:       (*creation).makeRoute,
		typeRole:        (*creation).makeRole,
		typePolicy:      (*creation).makePolicy,

		typeManagedPolicy: (*creation).makePolicy,
	}
}

func (c *creation) run(ctx context.Context, t *template) error {
	known, none := makers(), without()
	var unknown []error
	for _, id := range slices.Sorted(maps.Keys(t.resources)) {
		d := t.resources[id]
		if known[d.kind] != nil {
			if properties, ok := d.properties.(map[string]any); ok && d.kind == typeFunction {
				// SAM makes a resource of its own of it, for which the function does not wait.
				delete(properties, "DeploymentPreference")
			}
			c.pending[id] = d
		} else if _, fine := none[d.kind]; !fine {
			unknown = append(unknown, fmt.Errorf("%s: the local stack does not know resources of type %s", id, d.kind))
		}
	}
	if len(unknown) > 0 {
		return errors.Join(unknown...)
	}
	for len(c.pending) > 0 {
		if err := c.round(ctx, known); err != nil {
			return err
		}
	}
	if err := c.gateway.addRoutes(c.stack); err != nil {
		return err
	}
	if err := c.giveRoles(); err != nil {
		return err
	}
	if len(c.reused) > 0 {
		c.options.Logf("used as they are: tables %s; what an earlier run sealed stays sealed, as its key is gone", strings.Join(c.reused, ", "))
	}
	return c.fillOutputs(t.outputs)
}

// round creates every pending resource whose references are known, in the order
// of their names so that each run is the same.
func (c *creation) round(ctx context.Context, known map[string]maker) error {
	var waiting []string
	made := 0
	for _, id := range slices.Sorted(maps.Keys(c.pending)) {
		d := c.pending[id]
		properties, err := c.fill(d.properties)
		var wait *waitsFor
		if errors.As(err, &wait) {
			waiting = append(waiting, id+" "+err.Error())
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		resource, err := known[d.kind](c, ctx, id, properties)
		if err != nil {
			return fmt.Errorf("%s (%s): %w", id, d.kind, err)
		}
		resource.Type = d.kind
		c.stack.Resources[id] = resource
		delete(c.pending, id)
		made++
	}
	if made == 0 {
		return fmt.Errorf("resources refer to each other in a circle: %s", strings.Join(waiting, ", "))
	}
	return nil
}

func (c *creation) fillOutputs(outputs map[string]json.RawMessage) error {
	for name, raw := range outputs {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return fmt.Errorf("output %s: %w", name, err)
		}
		filled, err := c.fill(value)
		if err != nil {
			return fmt.Errorf("output %s: %w", name, err)
		}
		var s text
		if err := decode(filled, &s); err != nil {
			return fmt.Errorf("output %s: %w", name, err)
		}
		c.stack.Outputs[name] = string(s)
	}
	return nil
}

// physicalName is the declared name, or one of the stack and the logical id.
func (c *creation) physicalName(declared text, id string) string {
	if declared != "" {
		return string(declared)
	}
	return c.options.Name + "-" + id
}

// without lists the types that the local stack leaves out, each with its reason.
func without() map[string]string {
	const permissions = "locally, only the roles of functions are checked"
	const watching = "nobody collects metrics on one machine"
	const names = "the front door has the name of this machine"
	return map[string]string{
		"AWS::ApiGatewayV2::DomainName":   names,
		"AWS::ApiGatewayV2::ApiMapping":   names,
		"AWS::Route53::RecordSet":         names,
		"AWS::Lambda::Permission":         permissions,
		"AWS::SQS::QueuePolicy":           permissions,
		"AWS::S3::BucketPolicy":           permissions,
		"AWS::CloudWatch::Alarm":          watching,
		"AWS::CloudWatch::CompositeAlarm": watching,
		"AWS::CloudWatch::Dashboard":      watching,
		"AWS::CloudWatch::InsightRule":    watching,
		"AWS::Logs::LogGroup":             "logs go to the terminal",
		"AWS::Logs::MetricFilter":         watching,
		"AWS::Logs::QueryDefinition":      "logs go to the terminal",
	}
}
