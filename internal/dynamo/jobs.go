package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/webhook"
)

// A job is one registry row: pk "job", sk its id, which sorts by time. Like an
// endpoint it is one JSON document, `doc`, beside `rev`, the revision that guards
// every change: of two commands that run one job, the slower one finds that out
// at its next write.
const jobKind = "job"

func jobKey(id string) attributes { return attributes{"pk": str(jobKind), "sk": str(id)} }

// putJob writes a job over the revision that was seen; 0 for a new one.
func (s *Store) putJob(j webhook.Job, seen int64) (types.TransactWriteItem, error) {
	j.Revision = seen + 1
	doc, err := json.Marshal(j)
	if err != nil {
		return types.TransactWriteItem{}, fmt.Errorf("dynamo: job %s: %w", j.ID, err)
	}
	item := jobKey(j.ID)
	item["doc"], item["rev"] = str(string(doc)), num(j.Revision)
	x := newExpression()
	condition := "attribute_not_exists(" + x.name("pk") + ")"
	if seen > 0 {
		x = newExpression()
		condition = x.name("rev") + " = " + x.value(num(seen))
	}
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &s.Tables.Registry, Item: item, ConditionExpression: &condition,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.valuesOrNil(),
	}}, nil
}

// CreateJobBy inserts a job together with the record of the act. False means that
// the id is taken.
func (s *Store) CreateJobBy(ctx context.Context, j webhook.Job, a webhook.Act) (bool, error) {
	put, err := s.putJob(j, 0)
	if err != nil {
		return false, err
	}
	return s.commitFirst(ctx, s.with(a, put)...)
}

// UpdateJob writes how far a job that was read at its Revision has come. False
// means that somebody changed it since.
func (s *Store) UpdateJob(ctx context.Context, j webhook.Job) (bool, error) {
	put, err := s.putJob(j, j.Revision)
	if err != nil {
		return false, err
	}
	_, err = s.DB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: put.Put.TableName, Item: put.Put.Item, ConditionExpression: put.Put.ConditionExpression,
		ExpressionAttributeNames: put.Put.ExpressionAttributeNames, ExpressionAttributeValues: put.Put.ExpressionAttributeValues,
	})
	return writtenOrNot(err)
}

// UpdateJobBy is [Store.UpdateJob] together with the record of an act.
func (s *Store) UpdateJobBy(ctx context.Context, j webhook.Job, a webhook.Act) (bool, error) {
	put, err := s.putJob(j, j.Revision)
	if err != nil {
		return false, err
	}
	return s.commitFirst(ctx, s.with(a, put)...)
}

// Job reads one job, strongly consistent.
func (s *Store) Job(ctx context.Context, id string) (webhook.Job, bool, error) {
	item, err := s.read(ctx, s.Tables.Registry, jobKey(id))
	if err != nil || item == nil {
		return webhook.Job{}, false, err
	}
	j, err := decodeJob(item)
	return j, err == nil, err
}

func decodeJob(item attributes) (webhook.Job, error) {
	d := decoder{a: item}
	var j webhook.Job
	if err := json.Unmarshal([]byte(d.str("doc")), &j); err != nil {
		return j, fmt.Errorf("dynamo: job row: %w", err)
	}
	j.Revision = d.num("rev")
	return j, d.err
}

// Jobs yields the jobs, newest first.
func (s *Store) Jobs(ctx context.Context) iter.Seq2[webhook.Job, error] {
	return func(yield func(webhook.Job, error) bool) {
		x := newExpression()
		condition := x.name("pk") + " = " + x.value(str(jobKind))
		for item, err := range s.queryAll(ctx, &dynamodb.QueryInput{
			TableName: &s.Tables.Registry, KeyConditionExpression: &condition, ConsistentRead: aws.Bool(true),
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values, ScanIndexForward: aws.Bool(false),
		}) {
			var j webhook.Job
			if err == nil {
				j, err = decodeJob(item)
			}
			if !yield(j, err) || err != nil {
				return
			}
		}
	}
}

// subjectKey is where an act stands in its subject's history. A subject of more
// words than a noun and an id ("endpoint demo version k1") belongs to those two.
func subjectKey(a webhook.Act) attributes {
	sort := a.At.UTC().Format(auditTime) + "#" + a.ID
	if a.Job != "" {
		sort = jobSort(a.Job)
	}
	return attributes{"pk": str(subjectPartition(a.Subject)), "sk": str(sort)}
}

func jobSort(job string) string { return jobKind + "#" + job }

func subjectPartition(subject string) string {
	words := strings.SplitN(subject, " ", 3)
	return "acts#" + strings.Join(words[:min(len(words), 2)], " ")
}

// ActsOn returns everything that was done to a subject, newest first. Acts of
// before subjects had a history of their own are in their days only.
func (s *Store) ActsOn(ctx context.Context, subject string) ([]webhook.Act, error) {
	x := newExpression()
	condition := x.name("pk") + " = " + x.value(str(subjectPartition(subject)))
	var acts []webhook.Act
	for item, err := range s.queryAll(ctx, &dynamodb.QueryInput{
		TableName: &s.Tables.Registry, KeyConditionExpression: &condition, ConsistentRead: aws.Bool(true),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}) {
		if err != nil {
			return nil, err
		}
		act, err := decodeAct(item)
		if err != nil {
			return nil, err
		}
		acts = append(acts, act)
	}
	slices.SortStableFunc(acts, func(a, b webhook.Act) int { return b.At.Compare(a.At) })
	return acts, nil
}

// JobDid reports whether a job has acted on a subject, strongly consistent.
func (s *Store) JobDid(ctx context.Context, job, subject string) (bool, error) {
	item, err := s.read(ctx, s.Tables.Registry, attributes{"pk": str(subjectPartition(subject)), "sk": str(jobSort(job))})
	return item != nil, err
}

// Mark reads the processed mark of one run of an event, strongly consistent.
func (s *Store) Mark(ctx context.Context, id webhook.InboxID, run int) (webhook.Mark, bool, error) {
	item, err := s.read(ctx, s.Tables.Business, keyOf(markKey(id, run)))
	if err != nil || item == nil {
		return webhook.Mark{}, false, err
	}
	d := decoder{a: item}
	m := webhook.Mark{InboxID: id, Run: run, At: d.ms("at"), ExpiresAt: d.expiry()}
	return m, d.err == nil, d.err
}

// never is a wake time that every outbox row has before it.
var never = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// OpenPromises returns a page of all the outbox, whatever its wake times.
func (s *Store) OpenPromises(ctx context.Context, from string, limit int) (webhook.OutboxPage, error) {
	return s.ScanOutbox(ctx, 0, 1, never, from, limit)
}

// BringNear writes a promise's times anew and unpublished, so that the relay
// takes it: a stream record without published_at. False means that the promise is
// gone, or of another generation than the one that was read.
func (s *Store) BringNear(ctx context.Context, o webhook.Outbox) (bool, error) {
	e := newExpression()
	condition := "attribute_exists(" + e.name("id") + ") AND " + e.name("g") + " = " + e.value(num(int64(o.Gen)))
	update := "SET " + e.name("du") + " = " + e.value(ms(o.DueAt)) + ", " + e.name("wa") + " = " + e.value(ms(o.WakeAt)) +
		", " + e.name("w") + " = " + e.value(num(int64(o.Wakes)))
	remove := " REMOVE " + e.name("pa")
	if o.InDueIndex {
		update += ", " + e.name("dk") + " = " + e.value(str(dueKey(webhook.ShardOf(string(o.ID))))) + ", " + e.name("da") + " = " + e.value(ms(o.DueAt))
	} else {
		remove += ", " + e.name("dk") + ", " + e.name("da")
	}
	return s.updateOutbox(ctx, o.ID, condition, update+remove, e)
}
