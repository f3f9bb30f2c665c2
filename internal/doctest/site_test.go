//go:build unix

package doctest_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"dakghar/internal/devstack"
	"dakghar/internal/devstack/fault"
	"dakghar/internal/dynamo"
	"dakghar/internal/operator"
	"dakghar/internal/provider/remote/fakeprovider"
	"dakghar/internal/webhook"
)

// built is the programs, made once for all pages.
type built struct{ command, functions string }

func build(ctx context.Context, dir string) (built, error) {
	b := built{filepath.Join(dir, "dakghar"), filepath.Join(dir, "functions")}
	for _, args := range [][]string{
		{"build", "-o", b.command, "dakghar/cmd/dakghar"},
		{"build", "-tags", "lambda.norpc", "-o", b.functions + "/", "dakghar/functions/..."},
	} {
		if said, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
			return b, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, said)
		}
	}
	programs, err := os.ReadDir(b.functions)
	for _, p := range programs {
		// The stack looks for <LogicalId>/bootstrap.
		id := strings.ToUpper(p.Name()[:1]) + p.Name()[1:] + "Function"
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, "build", id), 0o750)
		}
		if err == nil {
			err = os.Rename(filepath.Join(b.functions, p.Name()), filepath.Join(dir, "build", id, "bootstrap"))
		}
	}
	b.functions = filepath.Join(dir, "build")
	return b, err
}

// site is a stack of one page's own, and the reader's shell beside it.
type site struct {
	stack *devstack.Stack
	log   string // the file of what its programs say
	// stuck are events that wait longer than a reader would.
	stuck map[webhook.InboxID]bool
	store *dynamo.Store
	op    *operator.Operator
	shell *shell
}

// open starts the stack of a page and arranges what the page presumes.
func open(ctx context.Context, dir string, b built, p page) (*site, error) {
	s := &site{stuck: map[webhook.InboxID]bool{}}
	var err error
	if s.shell, err = openShell(dir, b.command, p.files); err != nil {
		return nil, err
	}
	s.log = filepath.Join(s.shell.root, "dev.log")
	said, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = said.Close() })
	providers := ""
	if p.providers != nil {
		api := httptest.NewServer(p.providers)
		context.AfterFunc(ctx, api.Close) // the page is over by then
		providers = api.URL
	}
	s.stack, err = devstack.Start(ctx, devstack.Options{
		ProviderAPI:  providers,
		TemplatePath: "../../template.yaml", BuildDir: b.functions, HTTPAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", Log: said,
		Parameters: devstack.OwnParameters(),
	})
	if err != nil {
		return nil, err
	}
	s.watch()
	s.shell.env = append(s.shell.env, "DAKGHAR_LOCAL_URL="+s.stack.AWSURL())
	if p.arrange == nil {
		return s, nil
	}
	if err := p.arrange(ctx, s); err != nil {
		s.stack.Stop()
		return nil, fmt.Errorf("arranging: %w\n%s", err, s.said())
	}
	return s, nil
}

// said is the end of what the stack's programs have said.
func (s *site) said() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(text), "\n")
	for i, line := range lines {
		if from, to := strings.Index(line, `"_aws":`), strings.Index(line, `"function":`); from >= 0 && from < to {
			lines[i] = line[:from] + line[to:] // without the metrics' frame
		}
	}
	return strings.Join(lines[max(0, len(lines)-saidMax):], "")
}

// saidMax bounds the lines that a failure shows.
const saidMax = 20

// watch lets the test see the rows.
func (s *site) watch() {
	ref := func(id string) string { return s.stack.Declared().Resources[id].Ref }
	s.store = &dynamo.Store{
		DB: dynamodb.NewFromConfig(s.stack.Config()), Chance: mathrand.Float64, Wait: dynamo.Sleep,
		Tables: dynamo.Tables{Inbox: ref("InboxTable"), Outbox: ref("OutboxTable"), Business: ref("BusinessTable"), Registry: ref("RegistryTable")},
	}
	s.op = &operator.Operator{Registry: s.store, Inbox: s.store, Now: time.Now, NewID: rand.Text}
}

// patience is how long a reader waits for workers before reading on.
const patience = 10 * time.Second

// settle waits until nobody works, or patience ends: what is due is then stuck,
// and the page may be about that.
func (s *site) settle(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		busy, err := s.events(ctx, webhook.Received, webhook.Processing)
		if err != nil || len(busy) == 0 || dynamo.Sleep(within, 50*time.Millisecond) != nil {
			return err
		}
	}
}

// events are the events in any of these states of endpoints that are not paused,
// the last received first.
func (s *site) events(ctx context.Context, statuses ...webhook.Status) ([]webhook.Inbox, error) {
	endpoints, err := s.op.Endpoints(ctx)
	if err != nil {
		return nil, err
	}
	paused := map[webhook.EndpointID]bool{}
	for _, e := range endpoints {
		paused[e.ID] = !e.PausedAt.IsZero()
	}
	found, err := s.op.Events(ctx, operator.Events{Filter: webhook.Filter{Statuses: statuses, Since: time.Now().Add(-time.Hour)}, Limit: 1000})
	if err != nil {
		return nil, err
	}
	var rows []webhook.Inbox
	for row, err := range found {
		if err != nil {
			return nil, err
		}
		if !paused[row.Endpoint] && !s.stuck[row.ID] {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// await waits for a fact; the test's own deadline ends it.
func (s *site) await(ctx context.Context, what string, holds func() (bool, error)) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		if dynamo.Sleep(within, 20*time.Millisecond) != nil {
			return fmt.Errorf("%s: not within %s", what, patience)
		}
	}
}

// types runs lines as the reader would.
func (s *site) types(ctx context.Context, lines ...string) error {
	said, err := s.shell.run(ctx, strings.Join(lines, "\n"))
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, said)
	}
	return nil
}

// everyState is an arrangement: events of each state, and a paused endpoint. Its
// endpoints:
//
//	demo     Stripe, its events: one applied, four failed with partner_503, one held
//	shop     Razorpay: one applied, and one held that repeats its id with another body
//	objects  numbered objects: obj_gap has 1 and 2 applied, 5 and 6 parked
//	quiet    Stripe, paused, two events wait.
func everyState(ctx context.Context, s *site) error {
	err := s.types(ctx, endpoints, `
		bin/dakghar endpoint pause quiet --local
		bin/dakghar send --local --endpoint demo --type payment_intent.succeeded
		bin/dakghar send --local --endpoint shop --type payment.captured --event-id evt_twice --amount 100
		bin/dakghar send --local --endpoint shop --type payment.captured --event-id evt_twice --amount 200
		bin/dakghar send --local --endpoint quiet --type payment_intent.succeeded --count 2
		for n in 1 2 5 6; do bin/dakghar send --local --endpoint objects --type object.updated --object-id obj_gap --version $n; done`)
	if err != nil {
		return err
	}
	err = s.await(ctx, "events are applied, held and parked", func() (bool, error) {
		rows, err := s.events(ctx, webhook.Processed, webhook.Held, webhook.Parked)
		return len(rows) == 4+1+2, err
	})
	if err != nil {
		return err
	}
	return s.unheard(ctx, 77, 5, func(rows []webhook.Inbox) error {
		if err := s.types(ctx, "bin/dakghar inbox hold --local "+string(rows[0].ID)); err != nil {
			return err
		}
		for _, row := range rows[1:] {
			if err := s.fail(ctx, row, "partner_503: the partner answered 503"); err != nil {
				return err
			}
		}
		return nil
	})
}

// eventsWait is everyState with two events of demo that nobody has heard of yet.
func eventsWait(ctx context.Context, s *site) error {
	if err := everyState(ctx, s); err != nil {
		return err
	}
	return s.unheard(ctx, 78, 2, func(rows []webhook.Inbox) error {
		for _, row := range rows {
			s.stuck[row.ID] = true
		}
		return nil
	})
}

// endpoints makes the four endpoints.
const endpoints = `
	make_endpoint() { printf "$3" | bin/dakghar endpoint create --local --provider "$1" --id "$2" --secret-file -; }
	make_endpoint stripe demo whsec_first_secret_of_the_demo_page
	make_endpoint stripe quiet whsec_first_secret_of_a_quiet_place
	make_endpoint razorpay shop first_secret_of_the_shop_page
	make_endpoint standard-webhooks objects whsec_c2VjcmV0IG9mIHRoZSBvYmplY3RzIGVuZHBvaW50IQ==
	bin/dakghar endpoint update objects --local --policy object.changed=sequence`

// endpointsOnly is an arrangement without events.
func endpointsOnly(ctx context.Context, s *site) error { return s.types(ctx, endpoints) }

// listedEvents is a provider that had two events of the last hours.
func listedEvents() *fakeprovider.Server {
	api := fakeprovider.New()
	for n := range 2 {
		api.Event(fmt.Appendf(nil, `{"id":"evt_lost_%d","type":"payment_intent.succeeded","created":%d,"data":{"object":{"id":"pi_lost_%d","amount":100,"amount_received":100,"currency":"eur","status":"succeeded"}}}`,
			n, time.Now().Add(-time.Duration(n+1)*time.Hour).Unix(), n))
	}
	return api
}

// unheard sends events of which no worker hears, and has something done with
// them. The seed is another one than the pages use, so that theirs are new.
func (s *site) unheard(ctx context.Context, seed, n int, do func([]webhook.Inbox) error) error {
	faults := s.stack.Faults()
	if err := faults.Add(fault.Fault{Service: "dynamodbstreams", Operation: "GetRecords", Mode: fault.Lose}); err != nil {
		return err
	}
	defer faults.Clear("dynamodbstreams")
	if err := s.types(ctx, fmt.Sprintf("bin/dakghar send --local --endpoint demo --type payment_intent.succeeded --seed %d --count %d", seed, n)); err != nil {
		return err
	}
	rows, err := s.events(ctx, webhook.Received)
	if err == nil && len(rows) != n {
		err = fmt.Errorf("%d events wait, want %d", len(rows), n)
	}
	if err != nil {
		return err
	}
	if err := do(rows); err != nil {
		return err
	}
	read := faults.List()[0].Seen
	return s.await(ctx, "the stream was read to its end", func() (bool, error) {
		// The first of two further reads may have begun before the last write.
		return faults.List()[0].Seen >= read+2, nil
	})
}

// fail ends an event as a worker would whose attempts are spent.
func (s *site) fail(ctx context.Context, row webhook.Inbox, why string) error {
	now := time.Now()
	promise := webhook.NewOutboxID(row.ID, webhook.TopicProcess, 0)
	act := webhook.Act{ID: rand.Text(), At: now, Name: "inbox fail", Subject: "event " + string(row.ID), Who: "the arrangement"}
	ok, err := s.store.FailBy(ctx, row.Fail(now, why, 400*24*time.Hour), promise, act)
	if err == nil && !ok {
		err = fmt.Errorf("%s has moved on", row.ID)
	}
	return err
}
