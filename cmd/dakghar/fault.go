package main

import (
	"context"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"runtime/debug"
	"sync"

	"dakghar/internal/devstack"
	"dakghar/internal/devstack/fault/live"
)

// listFaults is the name that stands for all of them.
const listFaults = "list"

// faultView is a fault in JSON.
type faultView struct {
	Name  string `json:"name"`
	Says  string `json:"says"`
	Shows string `json:"shows"`
	Slow  bool   `json:"slow"`
}

func (a *app) listFaults() error {
	var rows [][]string
	for _, f := range live.List() {
		if a.json {
			if err := a.printJSON(faultView{f.Name, f.Says, f.Shows, f.Slow}); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{f.Name, f.Says})
	}
	if a.json {
		return nil
	}
	return a.table("FAULT WHAT_IS_SEEN", rows)
}

// showFault runs a stack that shows a fault and runs on. A fault that does not
// end as it must ends the stack with an error.
func (a *app) showFault(ctx context.Context, name string, o devstack.Options) error {
	debug.SetGCPercent(devstack.GCPercent)
	out := &lines{out: a.out}
	o.Log = out
	provider, err := live.ServeProvider()
	if err != nil {
		return err
	}
	defer provider.Stop()
	stack, err := devstack.Start(ctx, live.Prepare(o, provider.URL()))
	if err != nil {
		return err
	}
	defer stack.Stop() //nolint:contextcheck // it stops in order whatever has ended the context
	op, err := a.connect(ctx, target{local: true, localURL: stack.AWSURL()}, a.getenv)
	if err != nil {
		return err
	}
	site, err := live.Open(ctx, live.Config{Stack: stack, Provider: provider, Operator: op, Out: out, Now: a.now, Chance: mathrand.Float64})
	if err != nil {
		return err
	}
	fault, _ := live.Lookup(name)
	rows, err := site.Show(ctx, fault)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "look for yourself: dakghar inbox list --local --local-url %s --endpoint %s; Ctrl-C ends it\n", stack.AWSURL(), rows[0].Endpoint)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// lines lets the stack and the showing write to one place.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}
