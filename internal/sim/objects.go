package sim

import (
	"context"
	"sync"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// Objects is what a provider has, and says when it is asked. The zero value has
// nothing. It is safe for concurrent use.
type Objects struct {
	mu sync.Mutex
	// now holds what every object is; scripted what the next reads of it show
	// instead, as a replica that lags would.
	now      map[string][]byte
	scripted map[string][]Read
	reads    int
}

// Read is what one read of an object comes to.
type Read struct {
	Doc   []byte // nil: there is no such object
	Err   error
	After func() // runs before the read is answered
}

// Set makes an object what doc says, from now on.
func (o *Objects) Set(id string, doc []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now == nil {
		o.now = map[string][]byte{}
	}
	o.now[id] = doc
}

// Script decides what the next reads of an object show, in turn.
func (o *Objects) Script(id string, reads ...Read) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.scripted == nil {
		o.scripted = map[string][]Read{}
	}
	o.scripted[id] = append(o.scripted[id], reads...)
}

// Reads counts the reads so far.
func (o *Objects) Reads() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reads
}

// Current implements [processor.Objects].
func (o *Objects) Current(_ context.Context, _ webhook.Endpoint, _ *provider.Adapter, _ provider.Kind, id string) ([]byte, bool, error) {
	read := o.next(id)
	if read.After != nil {
		read.After()
	}
	return read.Doc, read.Doc != nil, read.Err
}

func (o *Objects) next(id string) Read {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads++
	script := o.scripted[id]
	if len(script) == 0 {
		return Read{Doc: o.now[id]}
	}
	o.scripted[id] = script[1:]
	return script[0]
}
