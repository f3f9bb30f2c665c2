package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/body"
	"dakghar/internal/business"
	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

// Command is the part of the operator's command that reads and changes events,
// over the world's own stores, as a program that was built with these handlers.
func (w *World) Command(handlers *business.Router) *operator.Operator {
	return &operator.Operator{
		Registry: w.Outside, Jobs: w.Outside, Inbox: w.Outside, Business: w.Outside, Sequences: w.Outside,
		Bodies: kept{w.bodies(w.config(), w.options, w.Now)}, Deliveries: w.Outside, Providers: w.Providers, Router: handlers,
		Who: func(context.Context) (string, error) { return "the test", nil },
		Now: w.Now, NewID: w.NewID, Wait: w.wait, Workers: 1, KeepInbox: life, KeepBody: 30 * 24 * time.Hour,
	}
}

// kept speaks of missing bodies in the operator's words.
type kept struct{ *body.Store }

func (k kept) Open(ctx context.Context, id webhook.BodyID, tenant webhook.Tenant, digest webhook.Digest) ([]byte, error) {
	raw, err := k.Store.Open(ctx, id, tenant, digest)
	if errors.Is(err, body.ErrMissing) {
		err = fmt.Errorf("%w: %w", operator.ErrNoBody, err)
	}
	return raw, err
}

// Contents are all rows of the tables that events leave something in: everything
// but the registry.
func (w *World) Contents() map[string][]map[string]types.AttributeValue {
	w.T.Helper()
	contents := map[string][]map[string]types.AttributeValue{}
	for name, table := range map[string]string{"inbox": w.tables.Inbox, "outbox": w.tables.Outbox, "business": w.tables.Business, "body": w.bodyTable} {
		pages := dynamodb.NewScanPaginator(w.db, &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(w.T.Context())
			if err != nil {
				w.T.Fatal(err)
			}
			contents[name] = append(contents[name], page.Items...)
		}
	}
	return contents
}

// DropBody deletes an event's body, as its expiry does.
func (w *World) DropBody(id webhook.BodyID) {
	w.T.Helper()
	if _, err := w.db.DeleteItem(w.T.Context(), &dynamodb.DeleteItemInput{
		TableName: &w.bodyTable, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: string(id)}},
	}); err != nil {
		w.T.Fatal(err)
	}
}

// Space lets a moment pass, so that no two events have one time.
func (w *World) Space() { w.Advance(time.Second) }

// RestartIngress gives the front door a new process, which remembers nothing.
func (w *World) RestartIngress() { w.Ingress.restart() }
