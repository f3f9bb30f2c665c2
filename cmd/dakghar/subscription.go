package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/delivery"
	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

func (a *app) subscriptionCommand() *cobra.Command {
	return a.onStack(a.group(&cobra.Command{
		Use:   "subscription",
		Short: "Make and look after the addresses of partners who are told",
		Long: `A subscription is one address of one partner: which events it is told, how it is
signed for, and how patiently it is tried again. docs/verify-our-webhooks.md is what
a partner reads.`,
		Example: `  dakghar subscription list --local`,
	}, a.subscriptionCreate(), a.subscriptionUpdate(), a.subscriptionList(), a.subscriptionShow(), a.subscriptionKeys(),
		a.subscriptionPause(), a.subscriptionDrain(), a.subscriptionResume(), a.subscriptionRotate(), a.subscriptionTest(), a.subscriptionDelete()))
}

// subscriptionFlags are the settings that create and update share.
type subscriptionFlags struct {
	url, toQueue, toBus              string
	redirectHosts, types             []string
	filter, header                   []string
	calls                            bool
	profile                          string
	credentialHeader, credentialFile string
	rate, burst, concurrency         int
}

func (s *subscriptionFlags) add(c *cobra.Command, unset func(string) string) {
	f := c.Flags()
	f.StringVar(&s.url, "url", "", "the partner's https address, without any secret in it")
	f.StringVar(&s.toQueue, "to-queue", "", "URL of an SQS queue, in place of --url")
	f.StringVar(&s.toBus, "to-bus", "", "ARN of an EventBridge bus, in place of --url")
	f.StringSliceVar(&s.redirectHosts, "redirect-host", nil, "a host besides the address's own to which a 307 or 308 may lead; repeat it for several; none for none")
	f.StringSliceVar(&s.types, "type", nil, `only events of this type or pattern: payment.succeeded, "payment.*"; repeat it for several; all for all`+unset("all"))
	f.StringArrayVar(&s.filter, "filter", nil, "PATH=TEXT: only events whose data has exactly this text at this path: object.currency=EUR; repeat it for several, all must hold; no text takes one away")
	f.StringArrayVar(&s.header, "header", nil, "NAME=VALUE: a further header, which is no secret; repeat it for several; no value takes one away")
	f.BoolVar(&s.calls, "calls", false, "make this the address of calls to another service, which handlers make by the subscription's id")
	f.StringVar(&s.profile, "profile", "", "how patiently it is tried again; see dakghar profile list"+unset("standard"))
	f.StringVar(&s.credentialHeader, "credential-header", "", "the header that carries the partner's own credential; none for none")
	f.StringVar(&s.credentialFile, "credential-file", "", "file with that credential, - for standard input; it is kept in Secrets Manager")
	f.IntVar(&s.rate, "rate", 0, "attempts a second in the long run, 0 for no limit")
	f.IntVar(&s.burst, "burst", 0, "and how many at once; goes with --rate")
	f.IntVar(&s.concurrency, "concurrency", 0, "attempts side by side in one process, 0 for no limit")
}

// set reads the flags that were given.
func (a *app) subscriptionSet(c *cobra.Command, s *subscriptionFlags) (operator.SubscriptionSettings, error) {
	var to operator.SubscriptionSettings
	var err error
	given := c.Flags().Changed
	if to.Target, err = s.target(given); err != nil {
		return to, err
	}
	if given("type") {
		to.Types = without(s.types, "all")
	}
	if given("redirect-host") {
		to.RedirectHosts = without(s.redirectHosts, "none")
	}
	if given("credential-header") {
		name := strings.Join(without([]string{s.credentialHeader}, "none"), "")
		to.CredentialHeader = &name
	}
	for name, set := range map[string]func(){
		"calls": func() { to.Calls = &s.calls }, "profile": func() { to.Profile = &s.profile }, "rate": func() { to.Rate = &s.rate },
		"burst": func() { to.Burst = &s.burst }, "concurrency": func() { to.Concurrency = &s.concurrency },
	} {
		if given(name) {
			set()
		}
	}
	if to.Filter, err = pairs[string, string]("filter", s.filter); err != nil {
		return to, err
	}
	if to.Header, err = pairs[string, string]("header", s.header); err != nil {
		return to, err
	}
	if s.credentialFile != "" {
		to.Credential, err = a.readSecret(s.credentialFile)
	}
	return to, err
}

func (s *subscriptionFlags) target(given func(string) bool) (*delivery.Target, error) {
	var t *delivery.Target
	for name, to := range map[string]delivery.Target{
		"url": {Kind: delivery.HTTP, URL: s.url}, "to-queue": {Kind: delivery.Queue, URL: s.toQueue}, "to-bus": {Kind: delivery.Bus, Bus: s.toBus},
	} {
		if !given(name) {
			continue
		}
		if t != nil {
			return nil, &operator.Refusal{Code: "usage", Usage: true, Problem: "--url, --to-queue and --to-bus are three ways to deliver: choose one"}
		}
		t = &to
	}
	return t, nil
}

// without leaves a word out, which stands for nothing.
func without(texts []string, word string) []string {
	return slices.DeleteFunc(append([]string{}, texts...), func(t string) bool { return t == word })
}

func (a *app) subscriptionCreate() *cobra.Command {
	var (
		n               operator.NewSubscription
		s               subscriptionFlags
		id, tenant, why string
	)
	var c *cobra.Command
	c = a.onOperator(&cobra.Command{
		Use:   "create",
		Short: "Make a subscription, and the secret that its partner verifies with",
		Long: `Make a subscription. Its signing secret is drawn here, kept in Secrets Manager, and
printed this once, with its key id: give both to the partner. With --ed25519 a key
pair is made, and its public half is printed in place of a secret.

The address is checked now and at every connection: https, a name of the public
internet, no name and password, nothing that looks like a secret. On the local stack
this machine's own names are allowed too. A credential of the partner's belongs into
a header: --credential-header NAME --credential-file FILE.

Running it again with the same --id after it died half-way finishes it. An id is
never used again.`,
		Example: `  dakghar subscription create --local --id demo --url http://127.0.0.1:9000/hooks
  dakghar subscription create --stack prod --id acme --url https://hooks.acme.com/dakghar --type "payment.*" --filter object.currency=EUR
  dakghar subscription create --stack prod --id acme-eu --url https://eu.acme.com/hooks --profile patient --rate 20 --burst 100 --concurrency 10
  pass show acme/api | dakghar subscription create --stack prod --id acme-api --url https://api.acme.com/in --credential-header Authorization --credential-file -
  dakghar subscription create --stack prod --id ledger --to-queue https://sqs.eu-west-1.amazonaws.com/123456789012/ledger`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		var err error
		if n.Set, err = a.subscriptionSet(c, &s); err != nil {
			return err
		}
		n.ID, n.Tenant, n.Why = delivery.SubscriptionID(id), webhook.Tenant(tenant), why
		issued, err := op.Subscribe(ctx, n)
		if err != nil {
			return err
		}
		return a.showIssued("is ready", issued)
	})
	f := c.Flags()
	f.StringVar(&id, "id", "", "its id: 1 to 40 lower-case letters, digits and inner hyphens (default: drawn at random)")
	f.StringVar(&tenant, "tenant", "", `whose events it is told (default "default")`)
	f.BoolVar(&n.Ed25519, "ed25519", false, "sign with a key pair, in place of a shared secret")
	f.StringVar(&why, "reason", "", "why, for the record")
	s.add(c, byDefault)
	return c
}

// showIssued shows a subscription with the key that was made for it, this once.
func (a *app) showIssued(is string, i operator.Issued) error {
	if a.json {
		return a.printJSON(struct {
			subscriptionView

			KeyID         string `json:"key_id"`
			SigningSecret word   `json:"signing_secret"` // shown this once
			PublicKey     word   `json:"public_key"`
		}{subscriptionJSON(i.Subscription, a.now()), i.KeyID, word(i.Secret.Reveal()), word(i.Public)})
	}
	a.printf("Subscription %s %s.\n", i.Subscription.ID, is)
	rows := [][]string{{"  to", targetText(i.Subscription.Target)}, {"  key id", i.KeyID}}
	if i.Public != "" {
		rows = append(rows, []string{"  public key", i.Public})
	} else {
		rows = append(rows, []string{"  secret", i.Secret.Reveal()})
	}
	if err := a.table("", rows); err != nil {
		return err
	}
	a.printf("Next:\n%s", a.steps(i.Next))
	return nil
}

func (a *app) subscriptionUpdate() *cobra.Command {
	var (
		s   subscriptionFlags
		why string
	)
	var c *cobra.Command
	c = a.onOperator(&cobra.Command{
		Use:   "update SUBSCRIPTION",
		Short: "Change a subscription's settings",
		Long: `Change what is named and leave the rest. Deliveries that are under way go to the new
address from their next attempt on; they keep their identity and their deadline.`,
		Example: `  dakghar subscription update acme --stack prod --rate 50 --burst 200 --reason "they asked for it"
  dakghar subscription update acme --stack prod --url https://new.acme.com/hooks --type all --header X-Team=`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		if err := changesNothing(c); err != nil {
			return err
		}
		set, err := a.subscriptionSet(c, &s)
		if err != nil {
			return err
		}
		changed, err := op.UpdateSubscription(ctx, delivery.SubscriptionID(args[0]), set, why)
		if err != nil {
			return err
		}
		return a.showChanged(changed, "has its new settings", "was like this before")
	})
	s.add(c, kept)
	c.Flags().StringVar(&why, "reason", "", "why, for the record")
	return c
}

// showChanged shows what an act has made of a subscription.
func (a *app) showChanged(c operator.SubscriptionChanged, is, was string) error {
	if a.json {
		v := subscriptionJSON(c.Subscription, a.now())
		v.Existed = &c.Existed
		return a.printJSON(v)
	}
	if c.Existed {
		is = was
	}
	a.printf("Subscription %s %s.\nNext:\n%s", c.Subscription.ID, is, a.steps(c.Next))
	return nil
}

func (a *app) subscriptionList() *cobra.Command {
	var tenant string
	c := a.onOperator(&cobra.Command{
		Use:     "list",
		Short:   "List the subscriptions, the deleted ones too",
		Example: `  dakghar subscription list --local --json`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		all, err := op.Subscriptions(ctx, webhook.Tenant(tenant))
		if err != nil {
			return err
		}
		return list[delivery.Subscription]{
			header: "SUBSCRIPTION TENANT STATE WANTS PROFILE FAILING_SINCE TO",
			row: func(s delivery.Subscription) []string {
				return []string{string(s.ID), string(s.Tenant), stateText(s), wants(s), s.ProfileName, when(s.FailingSince), targetText(s.Target)}
			},
			view: func(s delivery.Subscription) any { return subscriptionJSON(s, a.now()) },
		}.print(a, whole(all), false)
	})
	c.Flags().StringVar(&tenant, "tenant", "", "only this tenant's")
	return c
}

func (a *app) subscriptionShow() *cobra.Command {
	return a.onOperator(&cobra.Command{
		Use:     "show SUBSCRIPTION",
		Short:   "Show one subscription, its keys without their secrets, and its newest deliveries",
		Example: `  dakghar subscription show demo --local`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		shown, err := op.ShowSubscription(ctx, delivery.SubscriptionID(args[0]))
		if err != nil {
			return err
		}
		s := shown.Subscription
		if a.json {
			last := []deliveryView{}
			for _, d := range shown.Last {
				last = append(last, deliveryJSON(d))
			}
			return a.printJSON(struct {
				subscriptionView

				Last []deliveryView `json:"deliveries"` // newest first
			}{subscriptionJSON(s, a.now()), last})
		}
		if err := a.table("", subscriptionRows(s)); err != nil {
			return err
		}
		a.printf("\n")
		if err := a.signingKeys(s); err != nil {
			return err
		}
		a.printf("\nNewest deliveries:\n")
		return deliveries("MADE", func(d delivery.Delivery) time.Time { return d.CreatedAt }).print(a, whole(shown.Last), false)
	})
}

func (a *app) subscriptionKeys() *cobra.Command {
	var public bool
	c := a.onOperator(&cobra.Command{
		Use:   "keys SUBSCRIPTION",
		Short: "Show the keys that a subscription is signed with, or publish their public halves",
		Long: `Show which keys sign, by id and end; never their secrets. With --public, print the
list of public keys of a subscription that signs with key pairs, as partners read it:
serve it wherever they look for it.`,
		Example: `  dakghar subscription keys demo --local
  dakghar subscription keys acme --stack prod --public > keys.json`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		id := delivery.SubscriptionID(args[0])
		if public {
			doc, err := op.PublishedKeys(ctx, id)
			if err != nil {
				return err
			}
			a.printf("%s\n", doc)
			return nil
		}
		s, err := op.SigningKeys(ctx, id)
		if err != nil {
			return err
		}
		if !a.json {
			return a.signingKeys(s)
		}
		for _, k := range keysJSON(s, a.now()) {
			if err := a.printJSON(k); err != nil {
				return err
			}
		}
		return nil
	})
	c.Flags().BoolVar(&public, "public", false, "print the list of public keys, in JSON")
	return c
}

func (a *app) subscriptionPause() *cobra.Command {
	return a.holding(&cobra.Command{
		Use:   "pause SUBSCRIPTION",
		Short: "Let deliveries wait",
		Long: `Let deliveries be made and wait, within 30 seconds. One that waits beyond its deadline
ends EXPIRED: that is 48 hours after it was made with the standard profile.`,
		Example: `  dakghar subscription pause acme --stack prod --reason "their maintenance"`,
	}, false, "is paused; every process knows within 30 s", "was paused before")
}

func (a *app) subscriptionDrain() *cobra.Command {
	return a.holding(&cobra.Command{
		Use:   "drain SUBSCRIPTION",
		Short: "Let what was made until now go out, and what comes later wait",
		Long: `Let the deliveries that were made until now go out, retries included, and those that
are made later wait: for a partner that moves, and is to have everything before. With
nothing left from before it is a pause; nothing is lost meanwhile.`,
		Example: `  dakghar subscription drain acme --stack prod --reason "they move at noon"`,
	}, true, "drains; what is made from now on waits", "was draining before")
}

// holding finishes a command that lets deliveries wait.
func (a *app) holding(c *cobra.Command, drain bool, is, was string) *cobra.Command {
	var why string
	c = a.command(c, func(ctx context.Context, args []string) error {
		op, err := a.operator(ctx)
		if err != nil {
			return err
		}
		changed, err := op.PauseSubscription(ctx, delivery.SubscriptionID(args[0]), drain, why)
		if err != nil {
			return err
		}
		return a.showChanged(changed, is, was)
	})
	c.Flags().StringVar(&why, "reason", "", "why, for the record")
	return c
}

func (a *app) subscriptionResume() *cobra.Command {
	var (
		bulk bulkFlags
		why  string
	)
	c := a.onOperator(&cobra.Command{
		Use:   "resume SUBSCRIPTION",
		Short: "End a pause, and have the waiting deliveries attempted",
		Long: `End a pause, a drain, or the stop that a partner's 410 was. The plan is shown first,
and nothing is done before you say yes. Then the pause ends at once, and when every
process knows it, after ` + (operator.PauseWithin + 5*time.Second).String() + `, a job has the waiting deliveries attempted, the given
number a second. Run it again if it died; "dakghar job resume" goes on with its job.`,
		Example: `  dakghar subscription resume acme --stack prod --rate 20 --reason "they are back"`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		plan, err := op.PlanSubscriptionResume(ctx, delivery.SubscriptionID(args[0]), bulk.rate, why)
		if err != nil {
			return err
		}
		if sure, err := a.confirmedPlan(plan, bulk); err != nil || !sure {
			return err
		}
		if plan.Matched == 0 {
			if _, err := op.ResumeSubscription(ctx, plan, func(webhook.Job) {}); err != nil {
				return err
			}
			a.notef("Subscription %s is active; nothing waits.\n", args[0])
			return nil
		}
		a.notef("The job begins in %s, when every process knows that the pause is over.\n", operator.PauseWithin+5*time.Second)
		return a.runs(ctx, func(ctx context.Context, tell func(webhook.Job)) (webhook.Job, error) {
			return op.ResumeSubscription(ctx, plan, tell)
		})
	})
	bulk.job(c)
	c.Flags().StringVar(&why, "reason", "", "why, for the record")
	return c
}

func (a *app) subscriptionRotate() *cobra.Command {
	var (
		t    operator.Turn
		pair bool
	)
	var c *cobra.Command
	c = a.onOperator(&cobra.Command{
		Use:   "rotate SUBSCRIPTION",
		Short: "Sign with a new key; the previous one signs beside it",
		Long: `Make a new signing key and print its secret, this once, with its key id. Every attempt
names the newest key's id and is signed by both keys for as long as a retry may still
be under way; a partner that knows either of them accepts it.

With --now, only the new key signs, within 30 seconds: for a secret that has leaked, or
that nobody has. Until the partner knows the new one it refuses what is sent, and the
retries of the profile bring it again.`,
		Example: `  dakghar subscription rotate acme --stack prod --reason "yearly"
  dakghar subscription rotate acme --stack prod --now --reason "leaked"`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		if c.Flags().Changed("ed25519") {
			t.Ed25519 = &pair
		}
		issued, err := op.RotateSigning(ctx, delivery.SubscriptionID(args[0]), t)
		if err != nil {
			return err
		}
		return a.showIssued("signs with a new key, within 30 s", issued)
	})
	f := c.Flags()
	f.BoolVar(&pair, "ed25519", false, "make it a key pair; =false a shared secret (default: like the newest key)")
	f.BoolVar(&t.Now, "now", false, "end the keys that there are at once")
	f.StringVar(&t.Why, "reason", "", "why, for the record")
	return c
}

// testWait is how long a test's attempt is waited for, unless told otherwise: a new
// subscription is known everywhere after half a minute.
const testWait = 90 * time.Second

func (a *app) subscriptionTest() *cobra.Command {
	var (
		wait time.Duration
		why  string
	)
	c := a.onOperator(&cobra.Command{
		Use:   "test SUBSCRIPTION",
		Short: "Send a test event, and show what became of it",
		Long: `Send an event of type dakghar.test to this subscription alone, by the way that every
event takes: promised, fanned out, signed, sent by the dispatcher, and tried again like
every other. Then wait for its first attempt and show it. It fails unless the partner
accepted it.`,
		Example: `  dakghar subscription test demo --local`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		story, err := op.Try(ctx, delivery.SubscriptionID(args[0]), wait, why)
		if err != nil {
			return err
		}
		if err := a.showDelivery(story); err != nil {
			return err
		}
		return a.wantDelivered(story.Row)
	})
	c.Flags().DurationVar(&wait, "wait", testWait, "how long to wait for its first attempt")
	c.Flags().StringVar(&why, "reason", "", "why, for the record")
	return c
}

// wantDelivered fails unless the partner accepted a test.
func (a *app) wantDelivered(d delivery.Delivery) error {
	if d.Status == delivery.Delivered {
		return nil
	}
	next := []operator.Step{{Text: "what each cause asks for: docs/operate/delivery-dead.md"}}
	if d.LastError == "egress_unreachable" && a.target.local {
		next = append(next, operator.Step{Text: `nothing answers there; "dakghar listen" plays a partner on this machine`})
	}
	return &operator.Refusal{Code: "test_failed", Problem: fmt.Sprintf("the partner did not accept the test: %s, %s", d.Status, d.LastError), Next: next}
}

func (a *app) subscriptionDelete() *cobra.Command {
	var (
		sure bool
		why  string
	)
	c := a.onOperator(&cobra.Command{
		Use:   "delete SUBSCRIPTION",
		Short: "Stop a subscription for good",
		Long: `Stop a subscription: nothing more is made for it, and what waits is cancelled. It cannot
be taken back, and its id is never used again. Its row, its deliveries and its secret
stay to be looked at. To stop for a while, use pause.`,
		Example: `  dakghar subscription delete acme --stack prod --reason "contract ended"`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		again := operator.Step{Text: "to delete it without being asked:", Command: []string{"subscription", "delete", args[0], "--yes"}}
		if err := a.agreed(sure, "Delete subscription "+args[0]+" for good.", "deleted", again); err != nil {
			return err
		}
		changed, err := op.DeleteSubscription(ctx, delivery.SubscriptionID(args[0]), why)
		if err != nil {
			return err
		}
		return a.showChanged(changed, "is deleted", "was deleted before")
	})
	c.Flags().BoolVar(&sure, "yes", false, "do not ask")
	c.Flags().StringVar(&why, "reason", "", "why, for the record")
	return c
}

func targetText(t delivery.Target) string {
	if t.Kind == delivery.Bus {
		return t.Bus
	}
	return t.URL
}

func stateText(s delivery.Subscription) string {
	if s.StateWhy == "" {
		return string(s.State)
	}
	return string(s.State) + " (" + s.StateWhy + ")"
}

func wants(s delivery.Subscription) string {
	if s.Calls {
		return "calls"
	}
	return strings.Join(s.Types, ", ")
}

// subscriptionRows are a subscription for a person; what it does not have is left out.
func subscriptionRows(s delivery.Subscription) [][]string {
	rows := [][]string{
		{"subscription", string(s.ID)}, {"to", targetText(s.Target)}, {"redirects to", strings.Join(s.Target.RedirectHosts, ", ")}, {"tenant", string(s.Tenant)},
		{"state", stateText(s)}, {"since", when(s.StateAt)}, {"failing since", when(s.FailingSince)}, {"wants", wants(s)},
	}
	for _, at := range slices.Sorted(maps.Keys(s.Filter)) {
		rows = append(rows, []string{"only", at + "=" + s.Filter[at]})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Header)) {
		rows = append(rows, []string{"header", name + ": " + s.Header[name]})
	}
	if s.CredentialHeader != "" {
		rows = append(rows, []string{"credential", s.CredentialHeader + ": (in secret " + s.Credential + ")"})
	}
	limit := ""
	if s.Rate > 0 {
		limit = number(s.Rate) + " a second"
	}
	if s.Burst > 0 {
		limit += ", " + number(s.Burst) + " at once"
	}
	rows = append(rows, []string{"profile", s.ProfileName}, []string{"limit", limit})
	if s.Concurrency > 0 {
		rows = append(rows, []string{"side by side", number(s.Concurrency)})
	}
	rows = append(rows, []string{"secret", s.Secret}, []string{"created", when(s.CreatedAt)})
	return filled(rows)
}

func (a *app) signingKeys(s delivery.Subscription) error {
	var rows [][]string
	for _, k := range keysJSON(s, a.now()) {
		until, signs := when(time.Time(k.NotAfter)), "signs"
		if until == "" {
			until = "no end"
		}
		if !k.Signs {
			signs = "ended"
		}
		rows = append(rows, []string{k.KeyID, signs, when(time.Time(k.AddedAt)), until, k.Version})
	}
	return a.table("KEY STATE ADDED SIGNS_UNTIL VERSION", rows)
}

// signingKeyView is a signing key in JSON, without its secret.
type signingKeyView struct {
	SubscriptionID string `json:"subscription_id"`
	KeyID          string `json:"key_id"`
	Version        string `json:"version"`
	Signs          bool   `json:"signs"`
	AddedAt        stamp  `json:"added_at"`
	NotAfter       stamp  `json:"not_after"`
}

func keysJSON(s delivery.Subscription, now time.Time) []signingKeyView {
	views := []signingKeyView{}
	signing := s.Signing(now)
	for _, k := range s.Keys {
		signs := slices.ContainsFunc(signing, func(o delivery.Key) bool { return o.ID == k.ID })
		views = append(views, signingKeyView{string(s.ID), k.ID, string(k.Version), signs, stamp(k.AddedAt), stamp(k.NotAfter)})
	}
	return views
}

// subscriptionView is a subscription in JSON.
type subscriptionView struct {
	SubscriptionID   string            `json:"subscription_id"`
	Tenant           string            `json:"tenant"`
	State            string            `json:"state"`
	StateWhy         word              `json:"state_why"`
	StateAt          stamp             `json:"state_at"`
	FailingSince     stamp             `json:"failing_since"`
	Kind             string            `json:"kind"`
	URL              word              `json:"url"`
	Bus              word              `json:"bus"`
	RedirectHosts    []string          `json:"redirect_hosts"`
	Types            []string          `json:"types"`
	Filter           map[string]string `json:"filter"`
	Calls            bool              `json:"calls"`
	Profile          string            `json:"profile"`
	Header           map[string]string `json:"header"`
	CredentialHeader word              `json:"credential_header"`
	CredentialName   word              `json:"credential_secret_name"`
	SecretName       string            `json:"secret_name"`
	Rate             int               `json:"rate"` // 0 is no limit
	Burst            int               `json:"burst"`
	Concurrency      int               `json:"concurrency"`
	Keys             []signingKeyView  `json:"keys"`
	CreatedAt        stamp             `json:"created_at"`
	Revision         int64             `json:"revision"`

	Existed *bool `json:"existed,omitempty"`
}

func subscriptionJSON(s delivery.Subscription, now time.Time) subscriptionView {
	v := subscriptionView{
		SubscriptionID: string(s.ID), Tenant: string(s.Tenant), State: string(s.State), StateWhy: word(s.StateWhy), StateAt: stamp(s.StateAt),
		FailingSince: stamp(s.FailingSince), Kind: string(s.Target.Kind), URL: word(s.Target.URL), Bus: word(s.Target.Bus),
		RedirectHosts: append([]string{}, s.Target.RedirectHosts...), Types: append([]string{}, s.Types...), Filter: map[string]string{}, Calls: s.Calls,
		Profile: s.ProfileName, Header: map[string]string{}, CredentialHeader: word(s.CredentialHeader), CredentialName: word(s.Credential), SecretName: s.Secret,
		Rate: s.Rate, Burst: s.Burst, Concurrency: s.Concurrency, Keys: keysJSON(s, now), CreatedAt: stamp(s.CreatedAt), Revision: s.Revision,
	}
	maps.Copy(v.Filter, s.Filter)
	maps.Copy(v.Header, s.Header)
	return v
}
