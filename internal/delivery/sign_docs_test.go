package delivery_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
)

// page is what partners read. Its code is run here.
const page = "../../docs/verify-our-webhooks.md"

// block writes one of the page's blocks of code, which names itself in its first
// line, to a directory.
func block(t *testing.T, language, name, dir string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	sign := map[string]string{"go": "// ", "js": "// ", "python": "# "}[language]
	_, rest, found := strings.Cut(string(text), "```"+language+"\n"+sign+name+"\n")
	code, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed {
		t.Fatalf("the page has no block %s", name)
	}
	write(t, filepath.Join(dir, name), code)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runs runs a program on an input, and returns what it prints: one JSON object.
func runs(t *testing.T, into any, dir, input string, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, strings.NewReader(input), &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		t.Fatalf("%s printed %q: %v", command, out.String(), err)
	}
}

// program finds an interpreter, or skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s on this machine", name)
	}
	return path
}

// wanted is what each vector comes to: the key's id, or "refused".
func wanted(v vectors) map[string]string {
	want := map[string]string{}
	for _, v := range v.Vectors {
		want[v.Name] = "refused"
		if v.Expect == "valid" {
			want[v.Name] = v.KeyID
		}
	}
	return want
}

func vectorsText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sent is what a library is shown: signed now, since libraries read the clock
// themselves.
type sent struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// sentNow returns requests that a library must accept, and some that it must not.
func sentNow(t *testing.T) (input string, want map[string]string) {
	t.Helper()
	now := time.Now()
	k1, k2 := signing(t, "k1", secretOld), signing(t, "k2", secretNew)
	m := message()
	m.Body = []byte(`{"type":"payment.succeeded","name":"डाकघर ☃"}`)
	one, two, old := sign(t, m, now, k1), sign(t, m, now, k2, k1), sign(t, m, now.Add(-6*time.Minute), k1)
	cases := map[string]sent{
		"one key": {secretOld, one, string(m.Body)}, "two keys, the old one": {secretOld, two, string(m.Body)},
		"two keys, the new one": {secretNew, two, string(m.Body)}, "another key": {secretNew, one, string(m.Body)},
		"another body": {secretOld, one, strings.Replace(string(m.Body), "☃", "☂", 1)}, "six minutes old": {secretOld, old, string(m.Body)},
	}
	want = map[string]string{
		"one key": "valid", "two keys, the old one": "valid", "two keys, the new one": "valid",
		"another key": "refused", "another body": "refused", "six minutes old": "refused",
	}
	text, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), want
}

func wantSame(t *testing.T, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Proves T6 and X11 with the page's own words: what it tells partners to run
// accepts what we send and refuses what was changed.
func TestThePagesGoRuns(t *testing.T) {
	t.Parallel()
	goTool, dir := program(t, "go"), t.TempDir()
	block(t, "go", "verify.go", dir)
	block(t, "go", "library.go", dir)
	write(t, filepath.Join(dir, "main.go"), goDriver)
	input, library := sentNow(t)
	var got struct{ Vectors, Library map[string]string }
	// The files stand outside the module; what they import is found from here.
	runs(t, &got, ".", `{"vectors":`+vectorsText(t)+`,"library":`+input+`}`,
		goTool, "run", filepath.Join(dir, "verify.go"), filepath.Join(dir, "library.go"), filepath.Join(dir, "main.go"))
	wantSame(t, wanted(readVectors(t)), got.Vectors)
	wantSame(t, library, got.Library)
}

const goDriver = `package main

import (
	"encoding/json"
	"net/http"
	"os"
	"time"
)

func headerOf(m map[string]string) http.Header {
	h := http.Header{}
	for name, value := range m {
		h.Set(name, value)
	}
	return h
}

func main() {
	var in struct {
		Vectors struct {
			Keys    []struct{ KID, Verifies string }
			Vectors []struct {
				Name, Body string
				Trusts     []string
				Now        int64
				Headers    map[string]string
			}
		}
		Library map[string]struct {
			Secret, Body string
			Headers      map[string]string
		}
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		panic(err)
	}
	texts := map[string]string{}
	for _, k := range in.Vectors.Keys {
		texts[k.KID] = k.Verifies
	}
	out := map[string]map[string]string{"vectors": {}, "library": {}}
	for _, v := range in.Vectors.Vectors {
		keys := map[string]string{}
		for _, kid := range v.Trusts {
			keys[kid] = texts[kid]
		}
		out["vectors"][v.Name] = "refused"
		if d, err := Verify(keys, headerOf(v.Headers), []byte(v.Body), time.Unix(v.Now, 0)); err == nil {
			out["vectors"][v.Name] = d.KeyID
		}
	}
	for name, c := range in.Library {
		out["library"][name] = "valid"
		if err := VerifyWithLibrary(c.Secret, headerOf(c.Headers), []byte(c.Body)); err != nil {
			out["library"][name] = "refused"
		}
	}
	json.NewEncoder(os.Stdout).Encode(out)
}
`

func TestThePagesNodeRuns(t *testing.T) {
	t.Parallel()
	node, dir := program(t, "node"), t.TempDir()
	block(t, "js", "verify.mjs", dir)
	write(t, filepath.Join(dir, "main.mjs"), `
import { readFileSync } from "node:fs";
import { verify } from "./verify.mjs";
const all = JSON.parse(readFileSync(0, "utf8"));
const texts = Object.fromEntries(all.keys.map((k) => [k.kid, k.verifies]));
const out = {};
for (const v of all.vectors) {
  const keys = Object.fromEntries(v.trusts.map((kid) => [kid, texts[kid]]));
  try {
    out[v.name] = verify(keys, v.headers, Buffer.from(v.body), v.now).keyId;
  } catch (e) {
    if (!e.message.startsWith("not signed by a key")) throw e;
    out[v.name] = "refused";
  }
}
console.log(JSON.stringify(out));`)
	var got map[string]string
	runs(t, &got, dir, vectorsText(t), node, "main.mjs")
	wantSame(t, wanted(readVectors(t)), got)
}

func TestThePagesPythonRuns(t *testing.T) {
	t.Parallel()
	python, dir := program(t, "python3"), t.TempDir()
	block(t, "python", "verify.py", dir)
	write(t, filepath.Join(dir, "main.py"), `
import json, sys
import verify
try:
    import cryptography
except ImportError:
    cryptography = None
every = json.load(sys.stdin)
texts = {k["kid"]: k["verifies"] for k in every["keys"]}
out = {}
for v in every["vectors"]:
    keys = {kid: texts[kid] for kid in v["trusts"]}
    if cryptography is None and any(k.startswith("whpk_") for k in keys.values()):
        continue
    try:
        out[v["name"]] = verify.verify(keys, v["headers"], v["body"].encode(), v["now"])[1]
    except verify.Refused:
        out[v["name"]] = "refused"
json.dump(out, sys.stdout)`)
	all := readVectors(t)
	var got map[string]string
	runs(t, &got, dir, vectorsText(t), python, "main.py")
	want := wanted(all)
	for _, v := range all.Vectors {
		// Without its package cryptography, Python knows no Ed25519.
		if _, tried := got[v.Name]; !tried && len(v.Trusts) == 1 && v.Trusts[0] == "e1" {
			t.Logf("%s is skipped: this Python has no package cryptography", v.Name)
			delete(want, v.Name)
		}
	}
	wantSame(t, want, got)
}

// Proves T6: the Standard Webhooks package of npm accepts what we send.
func TestThePackageOfNPMAccepts(t *testing.T) {
	t.Parallel()
	node := program(t, "node")
	modules, err := filepath.Abs("../../build/tools/partner/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "standardwebhooks")); err != nil {
		t.Skip("the npm package is not there; scripts/tools.sh partner fetches it")
	}
	dir := t.TempDir()
	block(t, "js", "library.mjs", dir)
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "main.mjs"), `
import { readFileSync } from "node:fs";
import { WebhookVerificationError } from "standardwebhooks";
import { verifyWithLibrary } from "./library.mjs";
const out = {};
for (const [name, c] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  try {
    out[name] = verifyWithLibrary(c.secret, c.headers, c.body).type === "payment.succeeded" ? "valid" : "another event";
  } catch (e) {
    if (!(e instanceof WebhookVerificationError)) throw e;
    out[name] = "refused";
  }
}
console.log(JSON.stringify(out));`)
	input, want := sentNow(t)
	var got map[string]string
	runs(t, &got, dir, input, node, "main.mjs")
	wantSame(t, want, got)
}

// Proves T6: the Standard Webhooks package of Python accepts what we send.
func TestThePackageOfPythonAccepts(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs("../../build/tools/venv/bin/python3")
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), python, "-c", "import standardwebhooks").Run(); err != nil {
		t.Skip("the Python package is not there; scripts/tools.sh python fetches it")
	}
	dir := t.TempDir()
	block(t, "python", "library.py", dir)
	write(t, filepath.Join(dir, "main.py"), `
import json, sys
from standardwebhooks import WebhookVerificationError
import library
out = {}
for name, c in json.load(sys.stdin).items():
    try:
        out[name] = "valid" if library.verify_with_library(c["secret"], c["headers"], c["body"])["type"] == "payment.succeeded" else "another event"
    except WebhookVerificationError:
        out[name] = "refused"
json.dump(out, sys.stdout)`)
	input, want := sentNow(t)
	var got map[string]string
	runs(t, &got, dir, input, python, "main.py")
	wantSame(t, want, got)
}

// The page's list of public keys is what is published.
func TestThePagesListIsThePublishedOne(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	list := string(delivery.PublicKeys(readVectors(t).signing(t, []string{"e1"})))
	if !strings.Contains(string(text), "```json\n"+list+"\n```") {
		t.Errorf("the page does not show %s", list)
	}
}

// The page's numbers are the profiles'.
func TestThePageKnowsTheProfiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range delivery.Profiles() {
		span := fmt.Sprintf("%.0f hours", p.Deadline.Hours())
		if p.Deadline < time.Hour {
			span = fmt.Sprintf("%.0f minutes", p.Deadline.Minutes())
		}
		if !strings.Contains(string(text), "`"+p.Name+"` tries for "+span) && !strings.Contains(string(text), "`"+p.Name+"` for "+span) {
			t.Errorf("the page does not say that %s tries for %s", p.Name, span)
		}
		if p.Skew != 5*time.Minute {
			t.Errorf("%s tolerates %s, and the page says five minutes", p.Name, p.Skew)
		}
	}
}
