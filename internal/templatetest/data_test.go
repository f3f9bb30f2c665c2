package templatetest

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type table struct {
	Key     []string
	Indexes map[string][]string
	Stream  string
	TTL     string
}

func tables(t *testing.T) map[string]table {
	t.Helper()
	tmpl := load(t)
	out := map[string]table{}
	for _, id := range tmpl.ofType("AWS::DynamoDB::Table") {
		p := tmpl.Resources[id].Properties
		kinds := map[string]string{}
		for _, a := range p["AttributeDefinitions"].([]any) {
			kinds[text(a.(object)["AttributeName"])] = text(a.(object)["AttributeType"])
		}
		got := table{Key: keySchema(p, kinds)}
		if indexes, ok := p["GlobalSecondaryIndexes"].([]any); ok {
			got.Indexes = map[string][]string{}
			for _, index := range indexes {
				projection := text(at(t, index, "Projection", "ProjectionType"))
				got.Indexes[text(at(t, index, "IndexName"))] = append(keySchema(index.(object), kinds), projection)
			}
		}
		if p["StreamSpecification"] != nil {
			got.Stream = text(at(t, p, "StreamSpecification", "StreamViewType"))
		}
		if p["TimeToLiveSpecification"] != nil && at(t, p, "TimeToLiveSpecification", "Enabled") == true {
			got.TTL = text(at(t, p, "TimeToLiveSpecification", "AttributeName"))
		}
		out[id] = got
	}
	return out
}

// keySchema writes a key as "name type role" in order.
func keySchema(of object, kinds map[string]string) []string {
	var out []string
	for _, k := range of["KeySchema"].([]any) {
		name := text(k.(object)["AttributeName"])
		out = append(out, name+" "+kinds[name]+" "+text(k.(object)["KeyType"]))
	}
	return out
}

// Proves D3: the inbox's primary key is the unique key. Only work in flight has a stream.
func TestTablesHaveTheKeysThatTheCodeUses(t *testing.T) {
	pair := []string{"pk S HASH", "sk S RANGE"}
	want := map[string]table{
		"InboxTable": {
			Key: []string{"id S HASH"},
			Indexes: map[string][]string{
				"recent": {"rk S HASH", "ra N RANGE", "KEYS_ONLY"},
				"failed": {"fk S HASH", "fa N RANGE", "KEYS_ONLY"},
			},
			TTL: "x",
		},
		"OutboxTable": {
			Key:     []string{"id S HASH"},
			Indexes: map[string][]string{"due": {"dk S HASH", "da N RANGE", "KEYS_ONLY"}},
			Stream:  "NEW_IMAGE",
		},
		"DeliveryTable": {
			Key: []string{"id S HASH", "sk S RANGE"},
			Indexes: map[string][]string{
				"wake":   {"wk S HASH", "wa N RANGE", "KEYS_ONLY"},
				"recent": {"rk S HASH", "ca N RANGE", "KEYS_ONLY"},
				"dead":   {"fk S HASH", "en N RANGE", "KEYS_ONLY"},
			},
			TTL: "x",
		},
		"BodyTable":     {Key: []string{"id S HASH"}, TTL: "x"},
		"BusinessTable": {Key: pair, TTL: "x"},
		"RegistryTable": {Key: pair, TTL: "x"},
	}
	if diff := cmp.Diff(want, tables(t)); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}

func TestTablesSurviveMistakes(t *testing.T) {
	tmpl := load(t)
	for _, id := range tmpl.ofType("AWS::DynamoDB::Table") {
		got := object{}
		for _, name := range []string{"BillingMode", "DeletionProtectionEnabled", "PointInTimeRecoverySpecification"} {
			got[name] = tmpl.Resources[id].Properties[name]
		}
		want := object{
			"BillingMode":                      "PAY_PER_REQUEST",
			"DeletionProtectionEnabled":        ref("DeletionProtection"),
			"PointInTimeRecoverySpecification": object{"PointInTimeRecoveryEnabled": ref("PointInTimeRecovery")},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

// What cannot be made again stays when the stack goes; a queue holds only wake-ups and goes with it.
func TestWhatIsKeptStaysWhenTheStackGoes(t *testing.T) {
	want := map[string]string{
		"AWS::DynamoDB::Table": "Retain",
		"AWS::S3::Bucket":      "Retain",
		"AWS::KMS::Key":        "Retain",
		"AWS::SQS::Queue":      "Delete",
		"AWS::Logs::LogGroup":  "Delete",
	}
	for id, r := range load(t).Resources {
		policy, ok := want[r.Type]
		if ok && (r.DeletionPolicy != policy || r.UpdateReplacePolicy != policy) {
			t.Errorf("%s is %q on deletion and %q on replacement, not %s", id, r.DeletionPolicy, r.UpdateReplacePolicy, policy)
		}
	}
}

// Proves D6 in part: large bodies are encrypted under our key, closed to the public, and gone after their days.
func TestTheBucketKeepsBodiesClosedAndNotForever(t *testing.T) {
	p := load(t).Resources["BodyBucket"].Properties
	want := object{
		"OwnershipControls": object{"Rules": []any{object{"ObjectOwnership": "BucketOwnerEnforced"}}},
		"PublicAccessBlockConfiguration": object{
			"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true,
		},
		"BucketEncryption": object{"ServerSideEncryptionConfiguration": []any{object{
			"BucketKeyEnabled":              true,
			"ServerSideEncryptionByDefault": object{"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": attribute("DataKey.Arn")},
		}}},
		"VersioningConfiguration": object{"Status": "Enabled"},
		"LifecycleConfiguration": object{"Rules": []any{
			object{
				"Id": "BodiesExpire", "Status": "Enabled", "Prefix": "bodies/",
				"ExpirationInDays":               object{"Fn::FindInMap": []any{"BodyObject", ref("BodyDays"), "ExpirationDays"}},
				"NoncurrentVersionExpiration":    object{"NoncurrentDays": 1.0},
				"AbortIncompleteMultipartUpload": object{"DaysAfterInitiation": 1.0},
			},
			object{"Id": "MarkersGo", "Status": "Enabled", "ExpiredObjectDeleteMarker": true},
		}},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("bucket (-want +got):\n%s", diff)
	}
}

// Proves D6 in part: an object outlives the row that points at it by at most a day.
func TestAnObjectLivesADayLongerThanItsRow(t *testing.T) {
	tmpl := load(t)
	want := map[string]object{}
	for _, allowed := range list(tmpl.Parameters["BodyDays"]["AllowedValues"]) {
		days, err := strconv.Atoi(allowed)
		if err != nil {
			t.Fatal(err)
		}
		want[allowed] = object{"ExpirationDays": float64(days + 1)}
	}
	if diff := cmp.Diff(want, tmpl.Mappings["BodyObject"]); diff != "" {
		t.Errorf("BodyObject (-want +got):\n%s", diff)
	}
}

func TestTheDataKeyRotatesAndItsAdministratorsCannotRead(t *testing.T) {
	p := load(t).Resources["DataKey"].Properties
	if p["EnableKeyRotation"] != true {
		t.Error("the data key does not rotate")
	}
	readers := []string{"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:*", "*"}
	for _, s := range at(t, p, "KeyPolicy", "Statement").([]any) {
		statement := s.(object)
		for _, action := range list(statement["Action"]) {
			if slices.Contains(readers, action) && statement["Condition"] == nil {
				t.Errorf("statement %s gives %s without a condition", text(statement["Sid"]), action)
			}
		}
	}
}

type queue struct {
	RetentionSeconds, VisibilitySeconds float64
	ManagedEncryption                   bool
	DeadLetters                         string
	Receives                            float64
}

func queues(t *testing.T) map[string]queue {
	t.Helper()
	tmpl := load(t)
	out := map[string]queue{}
	for _, id := range tmpl.ofType("AWS::SQS::Queue") {
		p := tmpl.Resources[id].Properties
		got := queue{RetentionSeconds: p["MessageRetentionPeriod"].(float64)}
		got.VisibilitySeconds, _ = p["VisibilityTimeout"].(float64)
		got.ManagedEncryption, _ = p["SqsManagedSseEnabled"].(bool)
		if p["RedrivePolicy"] != nil {
			got.DeadLetters = text(at(t, p, "RedrivePolicy", "deadLetterTargetArn"))
			got.Receives = at(t, p, "RedrivePolicy", "maxReceiveCount").(float64)
		}
		out[id] = got
	}
	return out
}

func TestQueuesKeepDeadLettersLongest(t *testing.T) {
	const day = 24 * 60 * 60
	want := map[string]queue{
		"EventQueue": {
			RetentionSeconds: 4 * day, VisibilitySeconds: 180, ManagedEncryption: true,
			DeadLetters: "EventDeadLetters.Arn", Receives: 5,
		},
		"EventDeadLetters": {RetentionSeconds: 14 * day, ManagedEncryption: true},
		"DeliveryQueue": {
			RetentionSeconds: 4 * day, VisibilitySeconds: 360, ManagedEncryption: true,
			DeadLetters: "DeliveryDeadLetters.Arn", Receives: 5,
		},
		"DeliveryDeadLetters": {RetentionSeconds: 14 * day, ManagedEncryption: true},
		"RelayFailures":       {RetentionSeconds: 14 * day, ManagedEncryption: true},
	}
	if diff := cmp.Diff(want, queues(t)); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}

// cfn-lint asks for once the timeout; Lambda's own advice is six times.
func TestAMessageIsNotSeenAgainWhileItsBatchIsWorkedOn(t *testing.T) {
	for queue, function := range map[string]string{"EventQueue": "ProcessorFunction", "DeliveryQueue": "DispatcherFunction"} {
		visibility, timeout := queues(t)[queue].VisibilitySeconds, functions(t)[function].TimeoutSeconds
		if visibility < 6*timeout {
			t.Errorf("%s: visibility of %v s is less than six times the timeout of %v s", queue, visibility, timeout)
		}
	}
}

func TestQueuesAndBucketRefuseUnencryptedTransport(t *testing.T) {
	tmpl := load(t)
	guarded := map[string]bool{}
	for _, r := range tmpl.Resources {
		if r.Type != "AWS::SQS::QueuePolicy" && r.Type != "AWS::S3::BucketPolicy" {
			continue
		}
		for _, s := range at(t, r.Properties, "PolicyDocument", "Statement").([]any) {
			statement := s.(object)
			insecure := cmp.Equal(statement["Condition"], any(object{"Bool": object{"aws:SecureTransport": "false"}}))
			if insecure && statement["Effect"] == "Deny" && statement["Principal"] == "*" {
				for _, id := range append(list(r.Properties["Queues"]), text(r.Properties["Bucket"])) {
					guarded[id] = true
				}
			}
		}
	}
	for _, id := range append(tmpl.ofType("AWS::SQS::Queue"), tmpl.ofType("AWS::S3::Bucket")...) {
		if !guarded[id] {
			t.Errorf("%s accepts requests without TLS", id)
		}
	}
}
