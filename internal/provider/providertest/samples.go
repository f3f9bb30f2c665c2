package providertest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

var update = flag.Bool("update", false, "write the golden samples anew")

// golden is one sample with all that is read from it.
type golden struct {
	Type          webhook.EventType  `json:"type"`
	Kind          webhook.Kind       `json:"kind"`
	Policy        webhook.Policy     `json:"policy"`
	Header        signature.Header   `json:"header"`
	Body          json.RawMessage    `json:"body"`
	EventID       webhook.EventID    `json:"event_id"`
	ObjectID      string             `json:"object_id"`
	ObjectVersion string             `json:"object_version"`
	CreatedAt     time.Time          `json:"created_at"`
	ObjectType    webhook.ObjectType `json:"object_type"`
	State         string             `json:"state"`
	Version       int64              `json:"version"`
	HasVersion    bool               `json:"has_version"`
	Amount        int64              `json:"amount"`
	Currency      string             `json:"currency"`
	Credit        int                `json:"credit"`
	ParentID      string             `json:"parent_id"`
}

// testSamples compares one sample of every type, and all that is read from it,
// with testdata/golden. Run with -update to write them anew, then read the diff.
func testSamples(t *testing.T, a *provider.Adapter) {
	types := a.Types()
	if a.Pattern != nil {
		types = append(types, "object.updated")
	}
	known := map[string]bool{}
	for _, eventType := range types {
		file := filepath.Join("testdata", "golden", strings.ReplaceAll(string(eventType), "/", "-")+".json")
		known[file] = true
		got, err := json.MarshalIndent(read(t, a, eventType), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		compare(t, file, append(got, '\n'))
	}
	files, err := filepath.Glob("testdata/golden/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[file] {
			t.Errorf("%s is of no type", file)
		}
	}
	testPadding(t, a, types[0])
}

func read(t *testing.T, a *provider.Adapter, eventType webhook.EventType) golden {
	t.Helper()
	o := provider.SampleOptions{Type: eventType, EventID: eventID, At: At()}
	sample, err := a.Sample(o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := a.Sample(o)
	if err != nil || !bytes.Equal(sample.Body, again.Body) {
		t.Fatalf("%s: the same options made another sample: %v", eventType, err)
	}
	e, err := a.Envelope(sample.Header, sample.Body)
	if err != nil {
		t.Fatal(err)
	}
	k, ok := a.Kind(e.Type)
	if !ok {
		t.Fatalf("%s is not allowed", e.Type)
	}
	f, err := a.Facts(k, e.Type, sample.Body)
	if err != nil {
		t.Fatalf("%s: %v", eventType, err)
	}
	if e.ObjectID != f.ObjectID || !e.CreatedAt.Equal(f.CreatedAt) {
		t.Errorf("%s: the envelope says %q at %s, the facts %q at %s", eventType, e.ObjectID, e.CreatedAt, f.ObjectID, f.CreatedAt)
	}
	return golden{
		Type: e.Type, Kind: k.Name, Policy: k.Policy, Header: sample.Header, Body: sample.Body, EventID: e.EventID,
		ObjectID: e.ObjectID, ObjectVersion: e.ObjectVersion, CreatedAt: e.CreatedAt,
		ObjectType: f.ObjectType, State: f.State, Version: f.Version, HasVersion: f.HasVersion,
		Amount: f.Amount, Currency: f.Currency, Credit: f.Credit, ParentID: f.ParentID,
	}
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil { //nolint:gosec // test data, for everybody to read
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want +got\n%s", file, diff)
	}
}

// testPadding asks for exact sizes, up to the largest body that is accepted.
func testPadding(t *testing.T, a *provider.Adapter, eventType webhook.EventType) {
	for _, n := range []int{4 << 10, 10 << 10, a.BodyBytesMax} {
		sample, err := a.Sample(provider.SampleOptions{Type: eventType, EventID: eventID, BodyBytes: n})
		if err != nil || len(sample.Body) != n {
			t.Errorf("asked for %d bytes, got %d, %v", n, len(sample.Body), err)
		}
	}
}
