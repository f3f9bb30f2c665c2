package bench

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// buildDir is where `make build` and `make package` leave the programs.
const buildDir = "../../build"

// measureProgram looks at the programs themselves: how large they are and how
// soon one of them is ready.
func measureProgram(t *testing.T, f *figures) {
	t.Run("zip", func(t *testing.T) { f.set(t, "zip_mb_arm64", largestZip(t)) })
	t.Run("first poll", func(t *testing.T) { f.set(t, "first_poll_ms", firstPoll(t)) })
}

// largestZip returns the size of the largest archive for AWS in MB of 10^6 bytes.
func largestZip(t *testing.T) float64 {
	t.Helper()
	zips, err := filepath.Glob(filepath.Join(buildDir, "package", "*.zip"))
	if err != nil || len(zips) == 0 {
		t.Fatalf("no archives (%v): run `make package`", err)
	}
	var largest int64
	for _, path := range zips {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.3f MB", filepath.Base(path), float64(info.Size())/1e6)
		largest = max(largest, info.Size())
	}
	return float64(largest) / 1e6
}

// firstPoll returns the median time of 20 starts of the ingress program, from
// the start of its process to its first request for work.
func firstPoll(t *testing.T) float64 {
	t.Helper()
	polls := make(chan time.Time, 1)
	gone := make(chan struct{})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		polls <- time.Now()
		select {
		case <-r.Context().Done():
		case <-gone:
		}
	})}
	go server.Serve(l)
	defer server.Close()
	defer close(gone)

	start := func() float64 {
		cmd := exec.CommandContext(t.Context(), filepath.Join(buildDir, "IngressFunction", "bootstrap"))
		cmd.Env = ingressEnv(l.Addr().String())
		began := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatalf("%v: run `make build`", err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		select {
		case at := <-polls:
			return millis(at.Sub(began))
		case <-time.After(10 * time.Second):
			t.Fatal("the ingress program never asked for work")
			return 0
		}
	}
	start() // brings the file into memory
	var times []float64
	for range 20 {
		times = append(times, start())
	}
	t.Logf("first polls in ms: %.1f", times)
	return median(times)
}

// ingressEnv is a complete environment of the ingress; nothing in it is reached
// before the first event.
func ingressEnv(runtimeAPI string) []string {
	return []string{
		"AWS_LAMBDA_RUNTIME_API=" + runtimeAPI, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
		"AWS_LAMBDA_FUNCTION_NAME=IngressFunction", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512", "_HANDLER=bootstrap",
		"INBOX_TABLE=inbox", "OUTBOX_TABLE=outbox", "BODY_TABLE=body", "REGISTRY_TABLE=registry", "BODY_BUCKET=bodies",
		"DATA_KEY_ID=key", "SECRET_PREFIX=bench/endpoint/", "BODY_INLINE_BYTES=32768", "BODY_DAYS=30", "INBOX_DAYS=400", "LOG_LEVEL=info",
	}
}
