package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"dakghar/internal/devstack"
	"dakghar/internal/devstack/fault/live"
	"dakghar/internal/operator"
)

type devFlags struct {
	http, aws, template, build, dynamodb, fault, providerAPI, logs string
	noTriggers                                                     bool
}

func (a *app) devCommand() *cobra.Command {
	var f devFlags
	c := a.command(&cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine",
		Long: `Run the whole pipeline on this machine: what template.yaml declares, in embedded
AWS services, with the function binaries of "make build" behind a real Lambda
Runtime API. It prints ready and the front door's address, then the functions'
logs, one JSON object a line, or writes them to the file that --logs names. It ends
with Ctrl-C. Nothing is kept.

The services listen on the loopback interface only and check no signatures. Each
function is held to its role in the template: a call that it does not allow is
denied, and said in the log.

With --fault it shows a fault first: it arms it, sends a few events of its own
through an endpoint of its own, clears it, waits until everything rests, and says
what became of each event. Then the stack runs on, and the commands work on it.

With --no-triggers what waits in streams and queues waits for you, who invoke the
functions by hand: with the SAM CLI, say, in a container or under a debugger.`,
		Example: `  make build && dakghar dev
  dakghar dev --dynamodb http://127.0.0.1:8000
  dakghar dev --fault list
  dakghar dev --fault lost-stream --logs logs.txt`,
	}, func(ctx context.Context, _ []string) error {
		switch _, known := live.Lookup(f.fault); {
		case f.fault == listFaults:
			return a.listFaults()
		case f.fault != "" && f.noTriggers:
			return &operator.Refusal{Code: "usage", Usage: true, Problem: "--fault waits for what --no-triggers holds back: choose one"}
		case f.fault != "" && !known:
			return &operator.Refusal{
				Code: "usage", Usage: true, Problem: "there is no fault " + f.fault,
				Next: []operator.Step{{Text: "see which there are: dakghar dev --fault list"}},
			}
		}
		return a.dev(ctx, a, f)
	})
	flags := c.Flags()
	flags.StringVar(&f.http, "http", "127.0.0.1:8080", "address of the front door")
	flags.StringVar(&f.aws, "aws", "127.0.0.1:8081", "address of the AWS services")
	flags.StringVar(&f.template, "template", "template.yaml", "the template that declares the stack")
	flags.StringVar(&f.build, "build", "build", "directory of the built functions: <LogicalId>/bootstrap")
	flags.StringVar(&f.dynamodb, "dynamodb", "", "use another DynamoDB, such as DynamoDB Local, at this address (default $DYNAMODB, else the embedded one)")
	flags.StringVar(&f.providerAPI, "provider-api", "", "address of a stand-in for the providers' own APIs: each below its provider's name (default $PROVIDER_API_BASE, else the real ones)")
	flags.StringVar(&f.logs, "logs", "", "write the functions' logs to this file, anew, in place of the output")
	flags.BoolVar(&f.noTriggers, "no-triggers", false, "streams, queues and schedules call no function; requests are served")
	flags.StringVar(&f.fault, "fault", "", `show a fault first; "list" names them`)
	return c
}

func runDev(ctx context.Context, a *app, f devFlags) error {
	if f.dynamodb == "" {
		f.dynamodb = a.getenv("DYNAMODB")
	}
	if f.providerAPI == "" {
		f.providerAPI = a.getenv("PROVIDER_API_BASE")
	}
	o := devstack.Options{
		TemplatePath: f.template, BuildDir: f.build, HTTPAddr: f.http, AWSAddr: f.aws, DynamoDBEndpoint: f.dynamodb, ProviderAPI: f.providerAPI,
		NoTriggers: f.noTriggers, Parameters: devstack.OwnParameters(), Log: a.out,
	}
	if f.logs != "" {
		file, err := os.Create(f.logs)
		if err != nil {
			return fmt.Errorf("--logs: %w", err)
		}
		defer func() { _ = file.Close() }() // after the stack has stopped
		o.FunctionLog = file
	}
	if f.fault != "" {
		return a.showFault(ctx, f.fault, o)
	}
	return devstack.Run(ctx, o)
}
