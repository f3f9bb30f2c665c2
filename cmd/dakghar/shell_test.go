package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/ingress"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Secrets of these tests: made up, of the right form for Stripe.
const (
	first  = "whsec_9sK2vTq7Lr4Xw8Bn3Zd6Hy1Jc5Mf0PgA"
	second = "whsec_4bN7mQe2Ws9Rt6Yu3Io1Pa8Sd5Fg0HjK"
)

// shell runs commands on a world in memory and keeps a transcript of them.
type shell struct {
	t          *testing.T
	world      *operatortest.World
	ctx        context.Context
	transcript strings.Builder
	names      map[string]string
	compare    func(context.Context, target, func(string) string) (*comparison, error)
	backfill   func(context.Context, target, func(string) string) (*ingress.Backfill, error)
	get        func(context.Context, string) ([]byte, error)
	build      *debug.BuildInfo
}

func newShell(t *testing.T) *shell {
	return &shell{t: t, world: operatortest.New(), ctx: t.Context(), names: map[string]string{}}
}

// result is what one command did.
type result struct {
	code     int
	out, err string
}

// quietly runs a command without noting it.
func (s *shell) quietly(stdin string, args ...string) result {
	s.t.Helper()
	var out, errs bytes.Buffer
	a := &app{
		in: strings.NewReader(stdin), out: &out, err: &errs, getenv: func(string) string { return "" },
		now: s.world.Operator().Now,
		connect: func(context.Context, target, func(string) string) (*operator.Operator, error) {
			return s.world.Operator(), nil
		},
		compare: s.compare, backfill: s.backfill, get: s.get,
		dev: func(_ context.Context, a *app, f devFlags) error {
			a.printf("ready http://%s\n", f.http)
			return nil
		},
		built: func() (*debug.BuildInfo, bool) { return s.build, s.build != nil },
	}
	code := a.run(s.ctx, args)
	got := result{code, out.String(), errs.String()}
	for _, secret := range []string{first, second} {
		if strings.Contains(got.out+got.err, secret) {
			s.t.Errorf("dakghar %s shows a secret", strings.Join(args, " "))
		}
	}
	return got
}

// run runs a command and notes what it did.
func (s *shell) run(stdin string, args ...string) result {
	s.t.Helper()
	got := s.quietly(stdin, args...)
	fmt.Fprintf(&s.transcript, "$ dakghar %s\n%s", strings.Join(args, " "), got.out)
	if got.err != "" {
		fmt.Fprintf(&s.transcript, "2> %s\n", strings.ReplaceAll(strings.TrimSuffix(got.err, "\n"), "\n", "\n2> "))
	}
	if got.code != exitDone {
		fmt.Fprintf(&s.transcript, "(exit %d)\n", got.code)
	}
	s.transcript.WriteString("\n")
	return got
}

// made matches what depends on the adapters' samples, whose words are not the
// command's: ids and digests.
var made = regexp.MustCompile(`\b(in|bd|evt|pi)_[a-z2-7]{24,40}\b|\b[0-9a-f]{64}\b`)

// named gives each id the number of its first appearance.
func (s *shell) named(text string) string {
	return made.ReplaceAllStringFunc(text, func(id string) string {
		if s.names[id] == "" {
			kind, _, ok := strings.Cut(id, "_")
			if !ok {
				kind = "digest"
			}
			s.names[id] = fmt.Sprintf("<%s %d>", kind, len(s.names)+1)
		}
		return s.names[id]
	})
}

// wantGolden compares the transcript with testdata/NAME.golden.
func (s *shell) wantGolden(name string) {
	s.t.Helper()
	got := s.named(s.transcript.String())
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		s.t.Errorf("%s; if this is meant, run go test ./cmd/dakghar -update (-want +got):\n%s", file, diff)
	}
}

// created makes the demo endpoint, without noting it.
func created(t *testing.T) *shell {
	t.Helper()
	s := newShell(t)
	if r := s.quietly(first, "endpoint", "create", "--local", "--provider", "stripe", "--id", "demo", "--secret-file", "-"); r.code != exitDone {
		t.Fatalf("create: %+v", r)
	}
	return s
}
