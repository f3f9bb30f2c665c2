package templatetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Conditions under which the data key may be used.
const (
	inContext          = ` if {"StringEquals":{"kms:EncryptionContext:purpose":"body"}}`
	throughS3          = ` if {"StringEquals":{"kms:ViaService":{"Fn::Sub":"s3.${AWS::Region}.${AWS::URLSuffix}"}}}`
	throughDynamo      = ` if {"StringEquals":{"kms:ViaService":{"Fn::Sub":"dynamodb.${AWS::Region}.${AWS::URLSuffix}"}}}`
	secretsOfStack     = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${AWS::StackName}/endpoint/*"
	signingOfStack     = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${AWS::StackName}/subscription/*"
	sinkQueues         = `{"Fn::If":["HasSinkQueues",{"Fn::Split":[",",{"Ref":"SinkQueueArns"}]},{"Fn::GetAtt":"DeliveryQueue.Arn"}]}`
	sinkBuses          = `{"Fn::If":["HasSinkBuses",{"Fn::Split":[",",{"Ref":"SinkBusArns"}]},{"Fn::Sub":"arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:event-bus/none-of-${AWS::StackName}"}]}`
	credentialsOfStack = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${AWS::StackName}/api/*"
)

// rows is the condition that only these kinds of registry rows are touched, told by their partition keys.
func rows(patterns ...string) string {
	var keys any = patterns
	if len(patterns) == 1 {
		keys = patterns[0]
	}
	return " if " + text(object{"ForAllValues:StringLike": object{"dynamodb:LeadingKeys": keys}})
}

// permissions is everything that each function may do, one line an action and resource. A line that is added here is a
// decision; a role that gains one without it fails.
var permissions = map[string][]string{
	"IngressRole": {
		"dynamodb:DeleteItem on BodyTable.Arn",
		"dynamodb:GetItem on BodyTable.Arn",
		"dynamodb:GetItem on InboxTable.Arn",
		"dynamodb:PutItem on BodyTable.Arn",
		"dynamodb:PutItem on InboxTable.Arn",
		"dynamodb:PutItem on OutboxTable.Arn",
		"dynamodb:UpdateItem on BodyTable.Arn",
		"kms:Decrypt on DataKey.Arn" + throughS3,
		"kms:GenerateDataKey on DataKey.Arn" + inContext,
		"kms:GenerateDataKey on DataKey.Arn" + throughS3,
		"logs:CreateLogStream on IngressLogs.Arn",
		"logs:PutLogEvents on IngressLogs.Arn",
		"s3:DeleteObject on ${BodyBucket.Arn}/bodies/*",
		"s3:PutObject on ${BodyBucket.Arn}/bodies/*",
		"secretsmanager:GetSecretValue on " + secretsOfStack,
		"dynamodb:GetItem on RegistryTable.Arn" + rows("endpoint#*"),
		"dynamodb:PutItem on RegistryTable.Arn" + rows("endpoint#*"),
		"dynamodb:UpdateItem on RegistryTable.Arn" + rows("tokens#*"),
	},
	"RelayRole": {
		"dynamodb:DescribeStream on OutboxTable.StreamArn",
		"dynamodb:GetRecords on OutboxTable.StreamArn",
		"dynamodb:GetShardIterator on OutboxTable.StreamArn",
		"dynamodb:ListStreams on ${OutboxTable.Arn}/stream/*",
		"dynamodb:UpdateItem on OutboxTable.Arn",
		"logs:CreateLogStream on RelayLogs.Arn",
		"logs:PutLogEvents on RelayLogs.Arn",
		"sqs:SendMessage on DeliveryQueue.Arn",
		"sqs:SendMessage on EventQueue.Arn",
		"sqs:SendMessage on RelayFailures.Arn",
	},
	"ProcessorRole": {
		"dynamodb:ConditionCheckItem on BusinessTable.Arn",
		"dynamodb:DeleteItem on BusinessTable.Arn",
		"dynamodb:DeleteItem on OutboxTable.Arn",
		"dynamodb:GetItem on BodyTable.Arn",
		"dynamodb:GetItem on BusinessTable.Arn",
		"dynamodb:GetItem on InboxTable.Arn",
		"dynamodb:PutItem on BodyTable.Arn",
		"dynamodb:PutItem on BusinessTable.Arn",
		"dynamodb:PutItem on OutboxTable.Arn",
		"dynamodb:UpdateItem on BusinessTable.Arn",
		"dynamodb:UpdateItem on InboxTable.Arn",
		"dynamodb:UpdateItem on OutboxTable.Arn",
		"kms:Decrypt on DataKey.Arn" + inContext,
		"kms:Decrypt on DataKey.Arn" + throughS3,
		"kms:GenerateDataKey on DataKey.Arn" + inContext,
		"kms:GenerateDataKey on DataKey.Arn" + throughS3,
		"logs:CreateLogStream on ProcessorLogs.Arn",
		"logs:PutLogEvents on ProcessorLogs.Arn",
		"s3:GetObject on ${BodyBucket.Arn}/bodies/*",
		"s3:ListBucket on BodyBucket.Arn",
		"s3:PutObject on ${BodyBucket.Arn}/bodies/*",
		"secretsmanager:GetSecretValue on " + credentialsOfStack,
		"sqs:DeleteMessage on EventQueue.Arn",
		"sqs:GetQueueAttributes on EventQueue.Arn",
		"sqs:ReceiveMessage on EventQueue.Arn",
		"dynamodb:GetItem on RegistryTable.Arn" + rows("endpoint#*"),
		"dynamodb:Query on RegistryTable.Arn" + rows("subscriptions#*"),
		"dynamodb:BatchGetItem on RegistryTable.Arn" + rows("subscription#*"),
		"dynamodb:UpdateItem on RegistryTable.Arn" + rows("backfill#*"),
	},
	"DispatcherRole": {
		"dynamodb:DeleteItem on OutboxTable.Arn",
		"dynamodb:PutItem on BodyTable.Arn",
		"dynamodb:PutItem on OutboxTable.Arn",
		"events:PutEvents on " + sinkBuses,
		"sqs:SendMessage on " + sinkQueues,
		"kms:GenerateDataKey on DataKey.Arn" + inContext,
		"dynamodb:GetItem on BodyTable.Arn",
		"dynamodb:GetItem on DeliveryTable.Arn",
		"dynamodb:GetItem on OutboxTable.Arn",
		"dynamodb:PutItem on DeliveryTable.Arn",
		"dynamodb:UpdateItem on DeliveryTable.Arn",
		"dynamodb:UpdateItem on OutboxTable.Arn",
		"kms:Decrypt on DataKey.Arn" + inContext,
		"kms:Decrypt on DataKey.Arn" + throughS3,
		"logs:CreateLogStream on DispatcherLogs.Arn",
		"logs:PutLogEvents on DispatcherLogs.Arn",
		"s3:GetObject on ${BodyBucket.Arn}/bodies/*",
		"s3:ListBucket on BodyBucket.Arn",
		"secretsmanager:GetSecretValue on " + signingOfStack,
		"sqs:DeleteMessage on DeliveryQueue.Arn",
		"sqs:GetQueueAttributes on DeliveryQueue.Arn",
		"sqs:ReceiveMessage on DeliveryQueue.Arn",
		"sqs:SendMessage on DeliveryQueue.Arn",
		"dynamodb:Query on RegistryTable.Arn" + rows("subscriptions#*"),
		"dynamodb:GetItem on RegistryTable.Arn" + rows("subscription#*"),
		"dynamodb:BatchGetItem on RegistryTable.Arn" + rows("subscription#*"),
		"dynamodb:PutItem on RegistryTable.Arn" + rows("subscription#*"),
		"dynamodb:UpdateItem on RegistryTable.Arn" + rows("tokens#subscription/*"),
	},
	"ReconcilerRole": {
		"dynamodb:BatchGetItem on BusinessTable.Arn",
		"dynamodb:BatchGetItem on InboxTable.Arn",
		"dynamodb:BatchGetItem on OutboxTable.Arn",
		"dynamodb:ConditionCheckItem on InboxTable.Arn",
		"dynamodb:DeleteItem on BodyTable.Arn",
		"dynamodb:DeleteItem on OutboxTable.Arn",
		"dynamodb:GetItem on BodyTable.Arn",
		"dynamodb:GetItem on BusinessTable.Arn",
		"dynamodb:GetItem on DeliveryTable.Arn",
		"dynamodb:GetItem on InboxTable.Arn",
		"dynamodb:GetItem on OutboxTable.Arn",
		"dynamodb:PutItem on BodyTable.Arn",
		"dynamodb:PutItem on InboxTable.Arn",
		"dynamodb:PutItem on OutboxTable.Arn",
		"dynamodb:Query on ${DeliveryTable.Arn}/index/wake",
		"dynamodb:Query on ${InboxTable.Arn}/index/recent",
		"dynamodb:Query on ${OutboxTable.Arn}/index/due",
		"dynamodb:Scan on OutboxTable.Arn",
		"dynamodb:UpdateItem on BodyTable.Arn",
		"dynamodb:UpdateItem on BusinessTable.Arn",
		"dynamodb:UpdateItem on DeliveryTable.Arn",
		"dynamodb:UpdateItem on InboxTable.Arn",
		"dynamodb:UpdateItem on OutboxTable.Arn",
		"kms:Decrypt on DataKey.Arn" + throughS3,
		"kms:GenerateDataKey on DataKey.Arn" + inContext,
		"kms:GenerateDataKey on DataKey.Arn" + throughS3,
		"logs:CreateLogStream on ReconcilerLogs.Arn",
		"logs:PutLogEvents on ReconcilerLogs.Arn",
		"s3:DeleteObject on ${BodyBucket.Arn}/bodies/*",
		"s3:PutObject on ${BodyBucket.Arn}/bodies/*",
		"secretsmanager:GetSecretValue on " + credentialsOfStack,
		"sqs:SendMessage on DeliveryQueue.Arn",
		"sqs:SendMessage on EventQueue.Arn",
		"dynamodb:Query on RegistryTable.Arn" + rows("endpoints"),
		"dynamodb:GetItem on RegistryTable.Arn" + rows("endpoint#*", "backfill#*"),
		"dynamodb:UpdateItem on RegistryTable.Arn" + rows("lease#*", "backfill#*", "tokens#*"),
	},
	"CanaryRole": {
		"dynamodb:GetItem on InboxTable.Arn",
		"dynamodb:GetItem on RegistryTable.Arn" + rows("endpoint#*"),
		"dynamodb:Query on RegistryTable.Arn" + rows("endpoints"),
		"logs:CreateLogStream on CanaryLogs.Arn",
		"logs:PutLogEvents on CanaryLogs.Arn",
		"secretsmanager:GetSecretValue on " + secretsOfStack,
	},
	"ReleaseRole": releasing(),
}

// shifted are the functions whose versions shift. CodeDeploy moves their aliases, looks at the provision of one, and asks
// for the states of alarms.
var shifted = []string{"IngressFunction", "RelayFunction", "ProcessorFunction", "DispatcherFunction"}

// Alarms are listed by state: AWS has no grant for one of them that such a list would accept.
const alarmsOfAccount = "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:*"

func releasing() []string {
	lines := []string{"cloudwatch:DescribeAlarms on " + alarmsOfAccount}
	for _, function := range shifted {
		for _, action := range []string{"lambda:GetAlias", "lambda:GetProvisionedConcurrencyConfig", "lambda:UpdateAlias"} {
			lines = append(lines, action+" on "+function+".Arn", action+" on ${"+function+".Arn}:*")
		}
	}
	return lines
}

// tableKey is what every role has besides, for tables that are encrypted with the data key.
var tableKey = []string{
	"kms:Decrypt on DataKey.Arn" + throughDynamo,
	"kms:DescribeKey on DataKey.Arn" + throughDynamo,
	"kms:Encrypt on DataKey.Arn" + throughDynamo,
	"kms:GenerateDataKey on DataKey.Arn" + throughDynamo,
	"kms:ReEncryptFrom on DataKey.Arn" + throughDynamo,
	"kms:ReEncryptTo on DataKey.Arn" + throughDynamo,
}

// tracing is what every function has besides, for where the parameter Tracing is Active.
var tracing = []string{"xray:PutTelemetryRecords on *", "xray:PutTraceSegments on *"}

// grants collects what each role of the template may do, from its own and from attached policies.
func grants(t *testing.T, tmpl template) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for id, r := range tmpl.Resources {
		switch r.Type {
		case "AWS::IAM::Role":
			for _, policy := range r.Properties["Policies"].([]any) {
				out[id] = append(out[id], allowed(t, policy.(object))...)
			}
		case "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy":
			for _, role := range list(r.Properties["Roles"]) {
				out[role] = append(out[role], allowed(t, r.Properties)...)
			}
		}
	}
	for _, lines := range out {
		slices.Sort(lines)
	}
	return out
}

func allowed(t *testing.T, policy object) []string {
	t.Helper()
	var lines []string
	for _, s := range at(t, policy, "PolicyDocument", "Statement").([]any) {
		statement := s.(object)
		if statement["Effect"] != "Allow" {
			t.Fatalf("statement %v is no Allow", statement["Sid"])
		}
		for _, action := range list(statement["Action"]) {
			for _, resource := range list(statement["Resource"]) {
				line := action + " on " + resource
				if statement["Condition"] != nil {
					line += " if " + text(statement["Condition"])
				}
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func TestEveryRoleMayDoItsWorkAndNothingElse(t *testing.T) {
	want := map[string][]string{}
	for role, lines := range permissions {
		lines = slices.Clone(lines)
		if role != "ReleaseRole" {
			lines = slices.Concat(lines, tableKey, tracing)
		}
		want[role] = slices.Sorted(slices.Values(lines))
	}
	if diff := cmp.Diff(want, grants(t, load(t))); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

// The asterisks that remain are those for which AWS has nothing finer: keys below a prefix, secret names (Secrets Manager
// adds six characters of its own), the streams of one table, the versions of one function, the list of alarms, and X-Ray,
// whose two actions know no resource.
func TestAsterisksStandOnlyWhereTheyMust(t *testing.T) {
	documented := []string{"${BodyBucket.Arn}/bodies/*", secretsOfStack, credentialsOfStack, signingOfStack, "${OutboxTable.Arn}/stream/*"}
	documented = append(documented, alarmsOfAccount)
	for _, function := range shifted {
		documented = append(documented, "${"+function+".Arn}:*")
	}
	for role, lines := range grants(t, load(t)) {
		for _, line := range lines {
			grant, _, _ := strings.Cut(line, " if ")
			action, resource, _ := strings.Cut(grant, " on ")
			if slices.Contains(tracing, grant) {
				continue
			}
			if strings.Contains(action, "*") || strings.Contains(resource, "*") && !slices.Contains(documented, resource) {
				t.Errorf("%s: %s", role, line)
			}
		}
	}
}

// Managed policies of AWS carry Resource "*", and SAM adds them to every function that brings no role.
func TestNoRoleTakesManagedPoliciesAndOnlyItsServiceAssumesIt(t *testing.T) {
	tmpl := load(t)
	for _, id := range tmpl.ofType("AWS::IAM::Role") {
		p := tmpl.Resources[id].Properties
		if p["ManagedPolicyArns"] != nil {
			t.Errorf("%s takes managed policies", id)
		}
		service := "lambda.amazonaws.com"
		if id == "ReleaseRole" {
			service = "codedeploy.amazonaws.com"
		}
		want := []any{object{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": object{"Service": service}}}
		if diff := cmp.Diff(any(want), at(t, p, "AssumeRolePolicyDocument", "Statement")); diff != "" {
			t.Errorf("who assumes %s (-want +got):\n%s", id, diff)
		}
	}
	for _, id := range tmpl.ofType("AWS::Serverless::Function") {
		if tmpl.Resources[id].Properties["Policies"] != nil {
			t.Errorf("%s brings policies beside its role", id)
		}
	}
}
