package bench

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack"
	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

// system is the local stack with the real programs of `make build`, in memory,
// and a provider that sends to it.
type system struct {
	*sender
	t      *testing.T
	stack  *devstack.Stack
	db     *dynamodb.Client // the eyes of the test
	store  *dynamo.Store
	client *http.Client
}

// startSystem starts a system. The options say what is not as the template and
// `dakghar dev` have it.
func startSystem(t *testing.T, o devstack.Options) *system {
	t.Helper()
	o.TemplatePath, o.BuildDir, o.HTTPAddr, o.AWSAddr = "../../template.yaml", buildDir, "127.0.0.1:0", "127.0.0.1:0"
	o.StackName = "bench" // the ingress may read the secrets of its own stack only
	stack, err := devstack.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stack.Stop)
	ref := func(id string) string { return stack.Declared().Resources[id].Ref }
	s := &system{t: t, stack: stack, db: dynamodb.NewFromConfig(stack.Config()), client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: answerMax,
	}}
	t.Cleanup(s.client.CloseIdleConnections)
	s.store = &dynamo.Store{
		DB: s.db, Chance: rand.Float64, Wait: dynamo.Sleep,
		Tables: dynamo.Tables{Inbox: ref("InboxTable"), Outbox: ref("OutboxTable"), Business: ref("BusinessTable"), Registry: ref("RegistryTable")},
	}
	s.sender = register(t, secretsmanager.NewFromConfig(stack.Config()), s.store)
	return s
}

// answerMax is how long the provider waits. What takes longer has no answer.
const answerMax = 10 * time.Second

// send sends the n-th event once. Status 0 means that no answer came.
func (s *system) send(n int) (status int) {
	body, headers := s.event(n)
	return s.post(s.t.Context(), body, headers)
}

func (s *system) post(ctx context.Context, body []byte, headers map[string]string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.stack.FrontDoorURL()+"/in/stripe/"+string(endpoint), bytes.NewReader(body))
	if err != nil {
		return 0
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}

// sendUntilAcknowledged is a provider's patience: it comes again until it sees a 2xx.
func (s *system) sendUntilAcknowledged(n int) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		if status := s.send(n); status >= 200 && status < 300 {
			return
		}
		if dynamo.Sleep(ctx, 100*time.Millisecond) != nil {
			s.t.Errorf("event %d is not acknowledged within a minute", n)
			return
		}
	}
}

// awaitDone waits until no promise is open: every accepted event has ended.
func (s *system) awaitDone(within time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	for {
		out, err := s.db.Scan(ctx, &dynamodb.ScanInput{TableName: &s.store.Tables.Outbox, Limit: aws.Int32(1), ConsistentRead: aws.Bool(true)})
		if err == nil && len(out.Items) == 0 {
			return
		}
		if dynamo.Sleep(ctx, 50*time.Millisecond) != nil {
			s.showLeft()
			s.t.Fatalf("work is left after %s", within)
		}
	}
}

// showLeft logs the open promises and the rows that they are for.
func (s *system) showLeft() {
	s.each(s.store.Tables.Outbox, func(row map[string]types.AttributeValue) {
		promise, _, err := s.store.Outbox(s.t.Context(), webhook.OutboxID(textOf(row["id"])))
		inbox, _, inboxErr := s.store.Inbox(s.t.Context(), promise.InboxID)
		s.t.Logf("left: %+v of %s %s, attempt %d, lease until %s, last error %q; %v %v",
			promise, inbox.ID, inbox.Status, inbox.AttemptCount, inbox.LeaseUntil, inbox.LastError, err, inboxErr)
	})
}

// tally is what the tables say about all events together.
type tally struct {
	Rows     int   // of the inbox
	Applied  int   // of them: PROCESSED, with their outcome applied
	Marks    int   // processed marks
	Entries  int   // rows of the ledger
	Counted  int64 // entries as the balances count them: what is applied twice counts twice
	Balances int64 // the sums of all balances, in minor units
	Open     int   // rows of the outbox
}

// tally reads every row once.
func (s *system) tally() tally {
	s.t.Helper()
	var sum tally
	s.each(s.store.Tables.Inbox, func(row map[string]types.AttributeValue) {
		sum.Rows++
		if textOf(row["st"]) == string(webhook.Processed) && textOf(row["oc"]) == string(webhook.Applied) {
			sum.Applied++
		}
	})
	s.each(s.store.Tables.Outbox, func(map[string]types.AttributeValue) { sum.Open++ })
	s.each(s.store.Tables.Business, func(row map[string]types.AttributeValue) {
		switch kind, _, _ := strings.Cut(textOf(row["sk"]), "#"); kind {
		case "mark":
			sum.Marks++
		case "entry":
			sum.Entries++
		case "balance":
			sum.Counted += numberOf(row["entries"])
			sum.Balances += numberOf(row["balance_"+currency])
		}
	})
	return sum
}

func (s *system) each(table string, visit func(row map[string]types.AttributeValue)) {
	s.t.Helper()
	pages := dynamodb.NewScanPaginator(s.db, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, row := range page.Items {
			visit(row)
		}
	}
}

func textOf(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func numberOf(v types.AttributeValue) int64 {
	n, _ := v.(*types.AttributeValueMemberN)
	if n == nil {
		return 0
	}
	i, _ := strconv.ParseInt(n.Value, 10, 64)
	return i
}

// wantEach checks that each of the first n events is there once, and was applied
// once.
func (s *system) wantEach(n int) {
	s.t.Helper()
	want := tally{Rows: n, Applied: n, Marks: n, Entries: n, Counted: int64(n), Balances: int64(n) * amount}
	if diff := cmp.Diff(want, s.tally()); diff != "" {
		s.t.Errorf("the tables after %d events (-want +got):\n%s", n, diff)
	}
}

// atOnce calls send for the numbers from first to below end, so many at a time.
func atOnce(workers, first, end int, send func(n int)) {
	numbers := make(chan int)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for n := range numbers {
				send(n)
			}
		})
	}
	for n := first; n < end; n++ {
		numbers <- n
	}
	close(numbers)
	running.Wait()
}
