package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

// settingsFlags are the settings that create and update share.
type settingsFlags struct {
	types, policies, account []string
	allowFrom                []string
	keepUnknown, canary      bool
	overlap, backfill        time.Duration
	expect                   time.Duration
	rate, burst              int
	apiSecretFile            string
}

// add gives a command the flags; unset writes what one means that is left out.
func (s *settingsFlags) add(c *cobra.Command, unset func(string) string) {
	f := c.Flags()
	f.StringSliceVar(&s.types, "type", nil, "accept only this event type; repeat it for several; all for all that the adapter knows"+unset("all"))
	f.BoolVar(&s.keepUnknown, "keep-unknown", false, "keep events of other types as ignored rows, in place of refusing them with 422")
	f.DurationVar(&s.overlap, "overlap", 0, "how long a previous key stays trusted after the first match of a newer one"+unset("the provider's"))
	f.IntVar(&s.rate, "rate", 0, "verified requests a second that are taken in the long run, 0 for no limit")
	f.IntVar(&s.burst, "burst", 0, "and how many at once; goes with --rate")
	f.StringSliceVar(&s.allowFrom, "allow-from", nil, "take requests only from here: provider for the addresses that the provider publishes, an address, or a prefix; repeat it for several; any for anywhere"+unset("any"))
	f.StringSliceVar(&s.policies, "policy", nil, "KIND=POLICY: what decides the order of a kind's events: version, fetch, sequence, or catalogue for the adapter's own; repeat it for several")
	f.StringVar(&s.apiSecretFile, "api-secret-file", "", "file with a credential for the provider's own API, - for standard input")
	f.StringSliceVar(&s.account, "api-account", nil, "NAME=VALUE: what the provider's API must be told besides (a shop, a repository); repeat it for several")
	f.BoolVar(&s.canary, "canary", false, "send it a synthetic event every 5 minutes and have an alarm when one does not arrive; for stacks with the parameter Canary")
	f.DurationVar(&s.backfill, "backfill-every", 0, "compare the provider's list of events with ours this often, and fetch what is missing; 0 for never")
	f.DurationVar(&s.expect, "expect-every", 0, "how long the endpoint may be without an event before an alarm says that its provider is silent, 15m to 720h; 0 for ever")
}

// What a flag means that is left out: where something is made, a default; where it
// is changed, that it stays as it is, which the command says once.
func byDefault(value string) string { return " (default: " + value + ")" }
func kept(string) string            { return "" }

// changesNothing refuses a change that names nothing to change: an unnoticed slip
// would look done.
func changesNothing(c *cobra.Command) error {
	flags := c.Flags()
	n := flags.NFlag()
	for _, about := range []string{"reason", "json", "local", "local-url", "stack", "region"} {
		if flags.Changed(about) {
			n--
		}
	}
	if n > 0 {
		return nil
	}
	return &operator.Refusal{
		Code: "usage", Usage: true, Problem: "say what to change",
		Next: []operator.Step{{Text: "see what the flags mean:", Command: append(strings.Fields(c.CommandPath())[1:], "--help")}},
	}
}

// pairs reads NAME=VALUE.
func pairs[K, V ~string](flag string, texts []string) (map[K]V, error) {
	all := map[K]V{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, &operator.Refusal{Code: "usage", Usage: true, Problem: fmt.Sprintf("--%s %q is no NAME=VALUE", flag, text)}
		}
		all[K(name)] = V(value)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// eventTypes are the types that were given; all of them are none.
func (s *settingsFlags) eventTypes() []webhook.EventType {
	types := []webhook.EventType{}
	for _, t := range s.types {
		if t != "all" {
			types = append(types, webhook.EventType(t))
		}
	}
	return types
}

// settings are what the flags of a command change.
func (a *app) settings(c *cobra.Command, s *settingsFlags) (operator.Settings, error) {
	var (
		to  operator.Settings
		err error
	)
	given := c.Flags().Changed
	if given("type") {
		to.Types = s.eventTypes()
	}
	if given("allow-from") {
		from, err := operator.ParseAllowFrom(s.allowFrom)
		if err != nil {
			return to, err
		}
		to.AllowFrom = &from
	}
	for name, set := range map[string]func(){
		"keep-unknown": func() { to.KeepUnknown = &s.keepUnknown }, "overlap": func() { to.Overlap = &s.overlap }, "rate": func() { to.Rate = &s.rate },
		"burst": func() { to.Burst = &s.burst }, "backfill-every": func() { to.BackfillEvery = &s.backfill }, "canary": func() { to.Canary = &s.canary },
		"expect-every": func() { to.ExpectEvery = &s.expect },
	} {
		if given(name) {
			set()
		}
	}
	if to.Policies, err = pairs[webhook.Kind, webhook.Policy]("policy", s.policies); err != nil {
		return to, err
	}
	if to.Account, err = pairs[string, string]("api-account", s.account); err != nil {
		return to, err
	}
	if s.apiSecretFile != "" {
		to.Credential, err = a.readSecret(s.apiSecretFile)
	}
	return to, err
}

func (a *app) endpointUpdate() *cobra.Command {
	var (
		s   settingsFlags
		why string
	)
	var c *cobra.Command
	c = a.onOperator(&cobra.Command{
		Use:   "update ENDPOINT",
		Short: "Change an endpoint's settings",
		Long: `Change what is named and leave the rest. A policy is refused where its evidence is
missing: version and sequence need a number in the event, fetch needs an adapter that
knows how to fetch the object and a credential for the provider's API; events that add
up take only sequence. The credential is kept in Secrets Manager, as a secret of its
own that the front door cannot read. Every process knows the change within 30 seconds.

With --allow-from, whoever sends from elsewhere gets 401, as if the signature were wrong,
and nothing is kept. A provider's addresses change: what it sends from a new one is lost
unless it sends again, or you fetch it. The list in this program has a date, which
endpoint show tells.`,
		Example: `  dakghar endpoint update live --stack prod --rate 50 --burst 200 --reason "campaign"
  dakghar endpoint update live --stack prod --api-secret-file key.txt --policy payment.succeeded=fetch
  dakghar endpoint update live --stack prod --policy payment.succeeded=catalogue --type all
  dakghar endpoint update live --stack prod --allow-from provider,203.0.113.0/24 --reason "the auditor asks for it"`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		if err := changesNothing(c); err != nil {
			return err
		}
		to, err := a.settings(c, &s)
		if err != nil {
			return err
		}
		u, err := op.Update(ctx, webhook.EndpointID(args[0]), to, why)
		if err != nil {
			return err
		}
		if a.json {
			v := endpointJSON(u.Endpoint, op.URL(u.Endpoint.Provider, u.Endpoint.ID))
			v.Existed = &u.Existed
			return a.printJSON(v)
		}
		did := "has its new settings"
		if u.Existed {
			did = "was like this already"
		}
		a.printf("Endpoint %s %s.\nNext:\n%s", u.Endpoint.ID, did, a.steps(u.Next))
		return nil
	})
	s.add(c, kept)
	c.Flags().StringVar(&why, "reason", "", "why, for the record")
	return c
}

func (a *app) endpointPause() *cobra.Command {
	var why string
	c := a.onOperator(&cobra.Command{
		Use:   "pause ENDPOINT",
		Short: "Accept an endpoint's events, and work on none",
		Long: `Stop the work on an endpoint's events: they are accepted, stored and answered as
before, and wait. Every process knows within 30 seconds; what a worker has in hand is
finished. An event that waits until 2 days before its body expires ends FAILED, so do
not pause for weeks.`,
		Example: `  dakghar endpoint pause live --stack prod --reason "the ledger is being migrated"`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		p, err := op.Pause(ctx, webhook.EndpointID(args[0]), why)
		if err != nil {
			return err
		}
		if a.json {
			v := endpointJSON(p.Endpoint, op.URL(p.Endpoint.Provider, p.Endpoint.ID))
			v.Existed = &p.Existed
			return a.printJSON(v)
		}
		if p.Existed {
			a.printf("Endpoint %s is paused since %s.\n", p.Endpoint.ID, when(p.Endpoint.PausedAt))
		} else {
			a.printf("Endpoint %s is paused. Every process knows within %.0f s; it accepts events all the same.\n", p.Endpoint.ID, operator.PauseWithin.Seconds())
		}
		a.printf("Next:\n%s", a.steps([]operator.Step{
			{Text: "see what waits:", Command: []string{"inbox", "list", "--endpoint", args[0], "--status", "RECEIVED,RETRY"}},
			{Text: "go on:", Command: []string{"endpoint", "resume", args[0]}},
		}))
		return nil
	})
	c.Flags().StringVar(&why, "reason", "", "why, for the record")
	return c
}

func (a *app) endpointResume() *cobra.Command {
	var (
		bulk bulkFlags
		why  string
	)
	c := a.onOperator(&cobra.Command{
		Use:   "resume ENDPOINT",
		Short: "End a pause, and have the waiting events worked on",
		Long: `End a pause. The plan is shown first, and nothing is done before you say yes. Then the
pause ends at once, and when every process knows it, after ` + (operator.PauseWithin + 5*time.Second).String() + `, a job has the events
that wait published again, the given number a second: that is the rate at which the
workers get them. Run it again if it died; "dakghar job resume" goes on with its job.`,
		Example: `  dakghar endpoint resume live --stack prod --rate 200 --reason "migration done"`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		plan, err := op.PlanResume(ctx, webhook.EndpointID(args[0]), bulk.rate, why)
		if err != nil {
			return err
		}
		if sure, err := a.confirmedPlan(plan, bulk); err != nil || !sure {
			return err
		}
		a.notef("The job begins in %s, when every process knows that the pause is over.\n", operator.PauseWithin+5*time.Second)
		return a.runs(ctx, func(ctx context.Context, tell func(webhook.Job)) (webhook.Job, error) {
			return op.Resume(ctx, plan, tell)
		})
	})
	bulk.job(c)
	c.Flags().StringVar(&why, "reason", "", "why, for the record")
	return c
}

// settingsRows are an endpoint's settings for a person; what it does not have is
// left out.
func settingsRows(e webhook.Endpoint) [][]string {
	var rows [][]string
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("paused", when(e.PausedAt))
	if e.Rate > 0 {
		limit := fmt.Sprintf("%d a second", e.Rate)
		if e.Burst > 0 {
			limit += fmt.Sprintf(", %d at once", e.Burst)
		}
		add("limit", limit)
	}
	add("allow from", strings.Join(allowed(e.AllowFrom), ", "))
	for _, kind := range slices.Sorted(maps.Keys(e.Policies)) {
		add("policy", string(kind)+" by "+string(e.Policies[kind]))
	}
	if e.API != nil {
		add("api secret", e.API.Secret)
		for _, name := range slices.Sorted(maps.Keys(e.API.Account)) {
			add("api account", name+" "+e.API.Account[name])
		}
	}
	add("back-fill", every(e.BackfillEvery))
	if e.Canary {
		add("canary", "yes")
	}
	add("expect", every(e.ExpectEvery))
	return rows
}

// apiView is an endpoint's access to its provider's API in JSON, without the credential.
type apiView struct {
	SecretName string            `json:"secret_name"`
	Account    map[string]string `json:"account"`
}

func apiJSON(api *webhook.API) *apiView {
	if api == nil {
		return nil
	}
	account := api.Account
	if account == nil {
		account = map[string]string{}
	}
	return &apiView{api.Secret, account}
}
