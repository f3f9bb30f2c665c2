package sim

import (
	"cmp"
	"net/http"
	"path/filepath"
	"runtime"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"dakghar/internal/devstack/guard"
	"dakghar/internal/devstack/stack"
	"dakghar/internal/dynamo"
)

func handlers(w *World) map[string]http.Handler {
	return map[string]http.Handler{
		"DynamoDB_20120810": w.DynamoDB, "DynamoDBStreams_20120810": w.DynamoDB,
		"AmazonSQS": w.SQS, "secretsmanager": w.Secrets, "TrentService": w.KMS,
	}
}

// TemplatePath is where the repository's template lies.
func TemplatePath() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "template.yaml")
}

// createResources makes what the template declares, under the template's own
// bounds, in the embedded services or in borrowed tables.
func (w *World) createResources(clients stack.Clients) {
	w.T.Helper()
	made, err := stack.Create(w.T.Context(), stack.Options{TemplatePath: cmp.Or(w.options.TemplatePath, TemplatePath()), Name: w.stackName(), Parameters: w.options.Parameters, Clients: clients})
	if err != nil {
		w.T.Fatal(err)
	}
	w.wire.guard = guard.New(made.Guard(w.denied))
	if w.options.Use != nil {
		w.T.Cleanup(func() { w.options.Use.note(w, made) })
	}
	ref := func(id string) string {
		w.T.Helper()
		r, ok := made.Resources[id]
		if !ok {
			w.T.Fatalf("the template declares no %s", id)
		}
		return r.Ref
	}
	w.tables = dynamo.Tables{Inbox: ref("InboxTable"), Outbox: ref("OutboxTable"), Business: ref("BusinessTable"), Registry: ref("RegistryTable")}
	w.tables.Body = ref("BodyTable")
	w.bodyTable, w.bucket, w.keyID = ref("BodyTable"), ref("BodyBucket"), ref("DataKey")
	w.tables.Delivery = ref("DeliveryTable")
	w.queue, w.deliveryQueue = ref("EventQueue"), ref("DeliveryQueue")
	// A test never waits for a message: what is not there now is not there.
	for _, url := range []string{w.queue, w.deliveryQueue} {
		_, err = w.sqs.SetQueueAttributes(w.T.Context(), &sqs.SetQueueAttributesInput{
			QueueUrl: &url, Attributes: map[string]string{string(types.QueueAttributeNameReceiveMessageWaitTimeSeconds): "0"},
		})
		if err != nil {
			w.T.Fatal(err)
		}
	}
	if w.cursor = w.openStream(); w.ground != nil && w.ground.cursor != nil {
		w.cursor = *w.ground.cursor
	}
	w.cursor.origin = w.cursor.last
}
