package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"dakghar/internal/devstack/iam"
)

// leadingKeys is the condition key that has the partition keys of a request.
const leadingKeys = "dynamodb:leadingkeys"

type item = map[string]json.RawMessage

// keyed is what the calls about one item, and the parts of a transaction, have.
type keyed struct {
	TableName string
	Key, Item item
}

func (c Config) readDynamoDB(operation string, body []byte) ([]iam.Request, error) {
	switch operation {
	case "GetItem", "PutItem", "UpdateItem", "DeleteItem":
		var in keyed
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		return c.one(operation, in)
	case "Query", "Scan":
		return c.walk(operation, body)
	case "BatchGetItem", "BatchWriteItem":
		return c.batch(operation, body)
	case "TransactWriteItems", "TransactGetItems":
		return c.transaction(body)
	}
	var in struct{ TableName, ResourceArn string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	resource := "*"
	switch {
	case in.TableName != "":
		resource = c.table(in.TableName)
	case in.ResourceArn != "":
		resource = in.ResourceArn
	}
	return []iam.Request{{Action: "dynamodb:" + operation, Resource: resource}}, nil
}

// table is a table's ARN; calls may name a table by either.
func (c Config) table(name string) string {
	if strings.HasPrefix(name, "arn:") {
		return name
	}
	if arn, known := c.Tables[name]; known {
		return arn
	}
	return c.arn("dynamodb", "table/"+name)
}

func tableName(table string) string { return table[strings.LastIndexByte(table, '/')+1:] }

// one is a request about one item of a table.
func (c Config) one(action string, in keyed) ([]iam.Request, error) {
	key := in.Key
	if key == nil {
		key = in.Item
	}
	leading, err := c.leading(in.TableName, key)
	if err != nil {
		return nil, err
	}
	return []iam.Request{c.request(action, c.table(in.TableName), leading)}, nil
}

func (c Config) request(action, resource string, leading ...string) iam.Request {
	return iam.Request{Action: "dynamodb:" + action, Resource: resource, Context: map[string][]string{leadingKeys: leading}}
}

// leading is the partition key of an item.
func (c Config) leading(table string, key item) (string, error) {
	name, known := c.PartitionKeys[tableName(table)]
	if !known {
		return "", fmt.Errorf("table %s is not the template's", table)
	}
	return scalar(key[name])
}

// scalar is a key's value, {"S":"…"}, as text.
func scalar(value json.RawMessage) (string, error) {
	var typed map[string]string
	if err := json.Unmarshal(value, &typed); err != nil || len(typed) != 1 {
		return "", errors.New("an item without its partition key")
	}
	for _, text := range typed {
		return text, nil
	}
	return "", nil
}

// batch is one request a table, with the keys of all its items.
func (c Config) batch(operation string, body []byte) ([]iam.Request, error) {
	var in struct{ RequestItems map[string]json.RawMessage }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	var out []iam.Request
	for _, table := range slices.Sorted(maps.Keys(in.RequestItems)) {
		keys, err := batchKeys(operation, in.RequestItems[table])
		if err != nil {
			return nil, err
		}
		var leading []string
		for _, key := range keys {
			one, err := c.leading(table, key)
			if err != nil {
				return nil, err
			}
			leading = append(leading, one)
		}
		out = append(out, c.request(operation, c.table(table), leading...))
	}
	return out, nil
}

func batchKeys(operation string, of json.RawMessage) ([]item, error) {
	if operation == "BatchGetItem" {
		var in struct{ Keys []item }
		err := json.Unmarshal(of, &in)
		return in.Keys, err
	}
	var in []struct {
		PutRequest    struct{ Item item }
		DeleteRequest struct{ Key item }
	}
	err := json.Unmarshal(of, &in)
	var keys []item
	for _, w := range in {
		if w.PutRequest.Item != nil {
			keys = append(keys, w.PutRequest.Item)
		} else {
			keys = append(keys, w.DeleteRequest.Key)
		}
	}
	return keys, err
}

// transaction is one request a part: there is no permission called
// TransactWriteItems.
func (c Config) transaction(body []byte) ([]iam.Request, error) {
	var in struct{ TransactItems []map[string]keyed }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	actions := map[string]string{"Get": "GetItem", "Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
	var out []iam.Request
	for _, parts := range in.TransactItems {
		for part, of := range parts {
			action, known := actions[part]
			if !known {
				return nil, fmt.Errorf("part %s of a transaction is not known", part)
			}
			requests, err := c.one(action, of)
			if err != nil {
				return nil, err
			}
			out = append(out, requests...)
		}
	}
	return out, nil
}

// equality is a part of a key condition such as "#n0 = :v0": the partition key has
// no other kind.
var equality = regexp.MustCompile(`([#\w.]+)\s*=\s*(:\w+)`) //nolint:gochecknoglobals // compiled once, never written

// walk is a request about a table or an index as a whole, or one partition of it.
func (c Config) walk(operation string, body []byte) ([]iam.Request, error) {
	var in struct {
		TableName, IndexName      string
		KeyConditionExpression    string
		ExpressionAttributeNames  map[string]string
		ExpressionAttributeValues item
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	resource, of := c.table(in.TableName), tableName(in.TableName)
	if in.IndexName != "" {
		resource, of = resource+"/index/"+in.IndexName, of+"/"+in.IndexName
	}
	if operation == "Scan" { // it has no key, and AWS tells none
		return []iam.Request{{Action: "dynamodb:Scan", Resource: resource}}, nil
	}
	partition, known := c.PartitionKeys[of]
	if !known {
		return nil, fmt.Errorf("%s is not the template's", of)
	}
	for _, equal := range equality.FindAllStringSubmatch(in.KeyConditionExpression, -1) {
		name := equal[1]
		if alias, ok := in.ExpressionAttributeNames[name]; ok {
			name = alias
		}
		if name == partition {
			leading, err := scalar(in.ExpressionAttributeValues[equal[2]])
			return []iam.Request{c.request(operation, resource, leading)}, err
		}
	}
	return nil, errors.New("a query whose partition key is not found")
}

func (c Config) readStreams(operation string, body []byte) ([]iam.Request, error) {
	var in struct{ TableName, StreamArn string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	resource := in.StreamArn
	switch {
	case operation == "ListStreams" && in.TableName != "":
		resource = c.table(in.TableName) + "/stream/*"
	case resource == "":
		resource = "*" // an iterator, which only AWS could read
	}
	return []iam.Request{{Action: "dynamodb:" + operation, Resource: resource}}, nil
}
