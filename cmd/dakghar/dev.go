package main

import (
	"context"

	"github.com/spf13/cobra"

	"dakghar/internal/devstack"
)

type devFlags struct{ http, aws, template, build, dynamodb string }

func (a *app) devCommand() *cobra.Command {
	var f devFlags
	c := a.command(&cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine",
		Long: `Run the whole pipeline on this machine: what template.yaml declares, in embedded
AWS services, with the function binaries of "make build" behind a real Lambda
Runtime API. It prints ready and the front door's address, then the functions'
logs, and ends with Ctrl-C. Nothing is kept.

The services listen on the loopback interface only and check no credentials.`,
		Example: `  make build && dakghar dev
  dakghar dev --dynamodb http://127.0.0.1:8000`,
	}, func(ctx context.Context, _ []string) error { return a.dev(ctx, a, f) })
	flags := c.Flags()
	flags.StringVar(&f.http, "http", "127.0.0.1:8080", "address of the front door")
	flags.StringVar(&f.aws, "aws", "127.0.0.1:8081", "address of the AWS services")
	flags.StringVar(&f.template, "template", "template.yaml", "the template that declares the stack")
	flags.StringVar(&f.build, "build", "build", "directory of the built functions: <LogicalId>/bootstrap")
	flags.StringVar(&f.dynamodb, "dynamodb", "", "use another DynamoDB, such as DynamoDB Local, at this address (default $DYNAMODB, else the embedded one)")
	return c
}

func runDev(ctx context.Context, a *app, f devFlags) error {
	if f.dynamodb == "" {
		f.dynamodb = a.getenv("DYNAMODB")
	}
	return devstack.Run(ctx, devstack.Options{
		TemplatePath: f.template, BuildDir: f.build, HTTPAddr: f.http, AWSAddr: f.aws, DynamoDBEndpoint: f.dynamodb, Log: a.out,
	})
}
