// Command dakghar is the operator's tool: it runs the local stack, makes
// endpoints, turns keys over, sends samples, and shows what became of events. It
// says what it did in words, or with --json as one object a line.
//
// Its exit code is 0 when what was asked for was done, 1 when it was refused or
// failed, 2 when the command line makes no sense.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := &app{
		in:       os.Stdin,
		out:      os.Stdout,
		err:      os.Stderr,
		getenv:   os.Getenv,
		now:      time.Now,
		connect:  connect,
		compare:  connectComparison,
		backfill: connectBackfill,
		dev:      runDev,
		get:      get,
		built:    debug.ReadBuildInfo,
	}
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
