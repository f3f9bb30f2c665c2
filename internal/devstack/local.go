package devstack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

const region = "us-east-1"

// listenLoopback listens on an address that only this machine reaches.
func listenLoopback(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("address %q is not on the loopback interface: the local stack checks no signatures and listens nowhere else", addr)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %s of %s is in use, perhaps by another local stack: stop that program (lsof -i :%s names it) or choose another port", port, host, port)
	}
	return l, err
}

// localConfig is an SDK configuration for a local endpoint. It reads neither the
// environment nor files: no profile of the user's ever meets the local stack, and
// no call of the local stack's own ever leaves the machine.
func localConfig(endpoint string) aws.Config {
	return aws.Config{
		Region:       region,
		BaseEndpoint: &endpoint,
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient:   awshttp.NewBuildableClient(),
	}
}

// newID makes a random UUID, version 4.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails, see its documentation
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// syncWriter lets many goroutines write lines to one place.
type syncWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *syncWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}
