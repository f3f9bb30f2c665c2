package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/ingress"
	"dakghar/internal/operator"
)

// app is one run of the command: where it reads and writes, and how it reaches
// a stack.
type app struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	now      func() time.Time
	connect  func(ctx context.Context, t target, getenv func(string) string) (*operator.Operator, error)
	compare  func(ctx context.Context, t target, getenv func(string) string) (*comparison, error)
	backfill func(ctx context.Context, t target, getenv func(string) string) (*ingress.Backfill, error)
	dev      func(ctx context.Context, a *app, f devFlags) error
	get      func(ctx context.Context, url string) ([]byte, error)
	built    func() (*debug.BuildInfo, bool)

	json   bool
	target target
	// began is set once the command line was understood.
	began bool
}

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root() //nolint:contextcheck // cobra hands each command the context that it is executed with
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if errors.Is(err, errSaid) {
		return exitFailed
	}
	a.printError(err)
	if refusal, ok := errors.AsType[*operator.Refusal](err); !a.began || ok && refusal.Usage {
		return exitUsage
	}
	return exitFailed
}

// errSaid is a failure that the output tells by itself.
var errSaid = errors.New("told already")

func (a *app) root() *cobra.Command {
	root := a.group(&cobra.Command{
		Use:   "dakghar",
		Short: "Run, fill and look into a webhook receiver",
		Long: `dakghar runs the local stack, makes endpoints, turns their keys over, sends
sample events, and shows what became of each.

A command works on one stack: --local for the one that "dakghar dev" runs on this
machine, --stack NAME for a deployed one, with your own AWS credentials. dev, listen,
provider, profile, capacity and version need none.`,
		Example: `  dakghar dev
  dakghar endpoint create --local --provider stripe --id demo --secret-file secret.txt
  dakghar send --local --provider stripe --endpoint demo --type payment_intent.succeeded
  dakghar inbox list --local --endpoint demo`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	})
	section(root, "Try it:", a.devCommand(), a.sendCommand(), a.listenCommand(), a.loadCommand())
	section(root, "Set it up:", a.endpointCommand(), a.secretCommand(), a.subscriptionCommand())
	section(root, "See what became of it, and act:", a.inboxCommand(), a.deliveryCommand(), a.ledgerCommand(), a.sequenceCommand(), a.dlqCommand(), a.jobCommand(), a.auditCommand())
	section(root, "Repair, erase, keep:", a.reconcileCommand(), a.backfillCommand(), a.eraseCommand(), a.legalHoldCommand())
	section(root, "Know beforehand:", a.providerCommand(), a.capacityCommand(), a.profileCommand(), a.shadowCommand())
	root.AddCommand(a.versionCommand())
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print one JSON object a line")
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(badFlag)
	return root
}

// section adds commands that the help lists together.
func section(root *cobra.Command, title string, subs ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range subs {
		c.GroupID = title
		root.AddCommand(c)
	}
}

// group is a command that only holds others.
func (a *app) group(c *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return noCommand(c, args[0])
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.AddCommand(subs...)
	return c
}

// command finishes a command that does something: arguments are its only ones,
// and from its own code on, a failure is no misuse any more.
func (a *app) command(c *cobra.Command, do func(ctx context.Context, args []string) error) *cobra.Command {
	c.Args = takes(c.Use)
	c.RunE = func(c *cobra.Command, args []string) error {
		a.began = true
		return do(c.Context(), args)
	}
	return c
}

// onOperator finishes a command that does something on one stack.
func (a *app) onOperator(c *cobra.Command, do func(ctx context.Context, op *operator.Operator, args []string) error) *cobra.Command {
	return a.command(c, func(ctx context.Context, args []string) error {
		op, err := a.operator(ctx)
		if err != nil {
			return err
		}
		return do(ctx, op, args)
	})
}

// takes checks the arguments against those that the usage line names.
func takes(use string) cobra.PositionalArgs {
	names := strings.Fields(use)[1:]
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("say which %s: %s %s", names[len(args)], c.CommandPath(), strings.Join(names, " "))
		case len(args) > len(names):
			return fmt.Errorf("%q is one argument too many; see %s --help", args[len(names)], c.CommandPath())
		}
		return nil
	}
}

// onStack adds the flags that choose a stack.
func (a *app) onStack(c *cobra.Command) *cobra.Command {
	f := c.PersistentFlags()
	f.BoolVar(&a.target.local, "local", false, `use the stack that "dakghar dev" runs on this machine`)
	f.StringVar(&a.target.localURL, "local-url", "", "address of that stack's AWS services (default $DAKGHAR_LOCAL_URL, else "+localURL+")")
	f.StringVar(&a.target.stack, "stack", "", "use a deployed CloudFormation stack, with your own AWS credentials")
	f.StringVar(&a.target.region, "region", "", "its region (default: your AWS configuration's)")
	return c
}

// operator connects to the stack that the flags choose.
func (a *app) operator(ctx context.Context) (*operator.Operator, error) {
	if err := a.target.check(); err != nil {
		return nil, err
	}
	return a.connect(ctx, a.target, a.getenv)
}
