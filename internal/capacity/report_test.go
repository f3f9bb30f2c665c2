package capacity_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/capacity"
)

func estimate(change func(*capacity.Load)) capacity.Report {
	l := capacity.Defaults()
	l.RPS = 2000
	change(&l)
	return capacity.Estimate(l, capacity.ListPrices())
}

func costs(r capacity.Report) map[string]float64 {
	out := map[string]float64{}
	for _, c := range r.Costs {
		out[c.What] = math.Round(c.PerMillion*1000) / 1000
	}
	return out
}

// Proves L4, by hand: 21 units at $0.625, a dollar for the request, and so on.
func TestTheBillIsTheSumOfItsLines(t *testing.T) {
	t.Parallel()
	got := costs(estimate(func(*capacity.Load) {}))
	want := map[string]float64{
		"HTTP API": 1, "DynamoDB writes": 13.125, "DynamoDB reads": 0.25,
		"Lambda requests": 0.248, // 1 + 1/25 + 1/5, at $0.20
		"Lambda duration": 0.252, // (0.025·½ + 0.04/25·¼ + 0.06/5·½) GB-seconds
		"SQS":             0.2,   // half a request
		"logs":            0.704, // 1,408 bytes
		"KMS":             0.001, "Secrets Manager": 0, "logs kept": 0.006, "metrics and alarms": 0.005, "dashboard and insight rule": 0.001,
		"tables' storage and backup": got["tables' storage and backup"],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dollars a million (-want +got):\n%s", diff)
	}
	total := 0.0
	for _, d := range got {
		total += d
	}
	if r := estimate(func(*capacity.Load) {}); math.Abs(r.Total().PerMillion-total) > 0.01 || math.Abs(r.Total().Monthly-r.Total().PerMillion*5184) > 1 {
		t.Errorf("total %+v, want %.2f a million and 5,184 times that", r.Total(), total)
	}
}

// Each flag moves what it is about, and only that.
func TestEachNumberIsDrivenByWhatItSays(t *testing.T) {
	t.Parallel()
	base := estimate(func(*capacity.Load) {})
	lines := func(r capacity.Report) map[string]bool {
		moved := map[string]bool{}
		was, is := costs(base), costs(r)
		for what := range is {
			if is[what] != was[what] {
				moved[what] = true
			}
		}
		for what := range was {
			if _, there := is[what]; !there {
				moved[what] = true
			}
		}
		return moved
	}
	for name, tt := range map[string]struct {
		change func(*capacity.Load)
		want   []string
	}{
		"a handler of one row": {func(l *capacity.Load) { l.BusinessRows = 1 }, []string{"DynamoDB writes", "tables' storage and backup"}},
		"slower ingress":       {func(l *capacity.Load) { l.IngressMS = 100 }, []string{"Lambda duration", "KMS", "Secrets Manager"}},
		"copies":               {func(l *capacity.Load) { l.Copies = 1 }, []string{"HTTP API", "DynamoDB writes", "DynamoDB reads", "Lambda requests", "Lambda duration", "logs", "logs kept", "KMS"}},
		"fewer days of rows":   {func(l *capacity.Load) { l.InboxDays = 90 }, []string{"tables' storage and backup"}},
		"a second region":      {func(l *capacity.Load) { l.Regions = 2 }, []string{"DynamoDB writes", "tables' storage and backup", "data between regions"}},
		"one MiB":              {func(l *capacity.Load) { l.BodyKiB, l.Compression = 1024, 2 }, []string{"HTTP API", "DynamoDB writes", "S3 requests", "bucket", "tables' storage and backup"}},
	} {
		want := map[string]bool{}
		for _, what := range tt.want {
			want[what] = true
		}
		got := lines(estimate(tt.change))
		if name == "slower ingress" || name == "copies" {
			for _, small := range []string{"KMS", "Secrets Manager"} { // cents, that may round to the same
				delete(want, small)
				delete(got, small)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s moves (-want +got):\n%s", name, diff)
		}
	}
}

// Proves L4: at 2,000 requests a second the tables must be warm, and nothing else raised.
func TestWhatMustBeRaised(t *testing.T) {
	t.Parallel()
	raised := func(r capacity.Report) (out []string) {
		for _, q := range r.Quotas {
			if q.Raise {
				out = append(out, q.What)
			}
			if q.URL == "" || q.Default == 0 {
				t.Errorf("%s has no page or no default", q.What)
			}
		}
		return out
	}
	if diff := cmp.Diff([]string{"DynamoDB write units a second that a new table bears"}, raised(estimate(func(*capacity.Load) {}))); diff != "" {
		t.Errorf("at 2,000 (-want +got):\n%s", diff)
	}
	if got := raised(estimate(func(l *capacity.Load) { l.RPS = 400 })); got != nil {
		t.Errorf("at 400: %q", got)
	}
	if got := raised(estimate(func(l *capacity.Load) { l.RPS = 20_000 })); len(got) < 5 {
		t.Errorf("at 20,000: %q", got)
	}
	r := estimate(func(l *capacity.Load) { l.Subscriptions = 1 })
	want := []capacity.TableLoad{
		{Table: capacity.Body, Write: 8000, Read: 4000, Warm: 8000},
		{Table: capacity.Inbox, Write: 12_000, Index: 2000, Warm: 10_000},
		{Table: capacity.Outbox, Write: 16_000, Read: 2000, Warm: 16_000},
		{Table: capacity.Business, Write: 16_000, Read: 2000, Warm: 16_000},
		{Table: capacity.Delivery, Write: 28_000, Index: 10_000, Read: 2000, Warm: 18_000, WarmIndex: 10_000},
	}
	if diff := cmp.Diff(want, r.Tables); diff != "" || r.Load.Shards() != 16 {
		t.Errorf("%g shards, want 16; tables (-want +got):\n%s", r.Load.Shards(), diff)
	}
}

func TestALoadThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for flag, change := range map[string]func(*capacity.Load){
		"--rps":          func(l *capacity.Load) { l.RPS = 0 },
		"--body-kib":     func(l *capacity.Load) { l.BodyKiB = 1025 },
		"--compression":  func(l *capacity.Load) { l.Compression = 0.5 },
		"--retry-ratio":  func(l *capacity.Load) { l.RetryRatio = math.NaN() },
		"--queue-batch":  func(l *capacity.Load) { l.QueueBatch = 11 },
		"--regions":      func(l *capacity.Load) { l.Regions = 0 },
		"--stream-batch": func(l *capacity.Load) { l.StreamBatch = 0 },
	} {
		l := capacity.Defaults()
		change(&l)
		if err := l.Check(); err == nil || !strings.HasPrefix(err.Error(), flag+" is ") {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if err := capacity.Defaults().Check(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestAFileOfPricesIsReadStrictly(t *testing.T) {
	t.Parallel()
	whole := string(capacity.PricesFile())
	for name, tt := range map[string]struct{ text, want string }{
		"no JSON":          {"prices", "not as expected"},
		"another field":    {strings.Replace(whole, `"usd"`, `"eur"`, 1), "unknown field"},
		"one is missing":   {strings.Replace(whole, `"id": "kms_key"`, `"id": "sqs_request"`, 1), "kms_key is missing"},
		"a negative price": {strings.Replace(whole, `"usd": 0.625`, `"usd": -1`, 1), "dynamodb_write needs dollars"},
		"no source":        {strings.Replace(whole, `"via": "AWS's page"`, `"via": ""`, 1), "does not say where"},
		"no region":        {strings.Replace(whole, `"us-east-1"`, `""`, 1), "the region is missing"},
	} {
		if _, err := capacity.ParsePrices([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
