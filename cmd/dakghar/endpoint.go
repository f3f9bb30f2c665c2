package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

func (a *app) endpointCommand() *cobra.Command {
	return a.onStack(a.group(&cobra.Command{
		Use:     "endpoint",
		Short:   "Make and show the addresses that providers send to",
		Example: `  dakghar endpoint list --local`,
	}, a.endpointCreate(), a.endpointUpdate(), a.endpointPause(), a.endpointResume(), a.endpointList(), a.endpointShow()))
}

func (a *app) endpointCreate() *cobra.Command {
	var (
		n                      operator.NewEndpoint
		s                      settingsFlags
		providerName, id, file string
		tenant, scope, why     string
	)
	var c *cobra.Command
	c = a.onOperator(&cobra.Command{
		Use:   "create",
		Short: "Make an endpoint: its secret and its registry row",
		Long: `Make the address of one provider's webhook. The provider's signing secret is read
from a file, or from standard input for -, checked, and kept in Secrets Manager.
Running it again after it died half-way finishes it; after it succeeded, it
changes nothing. An id is never used again.`,
		Example: `  dakghar endpoint create --local --provider stripe --id demo --secret-file secret.txt
  pass show stripe/webhook | dakghar endpoint create --stack prod --provider stripe --id live --secret-file -
  dakghar endpoint create --local --provider github --id code --secret-file secret.txt --type repository.created --keep-unknown`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		var err error
		if n.Secret, err = a.readSecret(file); err != nil {
			return err
		}
		if file == "-" && s.apiSecretFile == "-" {
			return &operator.Refusal{Code: "usage", Usage: true, Problem: "--secret-file and --api-secret-file cannot both be standard input"}
		}
		to, err := a.settings(c, &s)
		if err != nil {
			return err
		}
		n.Types, n.KeepUnknown, n.Overlap, n.Rate, n.Burst, n.BackfillEvery = to.Types, s.keepUnknown, s.overlap, s.rate, s.burst, s.backfill
		n.Policies, n.Credential, n.Account, n.AllowFrom = to.Policies, to.Credential, to.Account, to.AllowFrom
		n.Canary, n.ExpectEvery = s.canary, s.expect
		n.Provider, n.ID = webhook.Provider(providerName), webhook.EndpointID(id)
		n.Tenant, n.Scope, n.Why = webhook.Tenant(tenant), webhook.Scope(scope), why
		created, err := op.Create(ctx, n)
		if err != nil {
			return err
		}
		return a.showCreated(created)
	})
	f := c.Flags()
	f.StringVar(&providerName, "provider", "", "the provider: stripe, github, shopify, slack, razorpay, paddle, standard-webhooks, svix")
	f.StringVar(&id, "id", "", "the endpoint's id: 1 to 40 lower-case letters, digits and inner hyphens")
	f.StringVar(&file, "secret-file", "", "file with the provider's signing secret, - for standard input")
	f.StringVar(&tenant, "tenant", "", `who owns it (default "default")`)
	s.add(c, byDefault)
	f.StringVar(&scope, "scope", "", "boundary of event ids, to share with another endpoint of the same provider (default: the id)")
	f.StringVar(&why, "reason", "", "why, for the record")
	return required(c, "provider", "id", "secret-file")
}

func (a *app) showCreated(c operator.Created) error {
	if a.json {
		v := endpointJSON(c.Endpoint, c.URL)
		v.Existed = &c.Existed
		return a.printJSON(v)
	}
	is := "is ready"
	if c.Existed {
		is = "was there already, exactly like this"
	}
	a.printf("Endpoint %s %s.\n", c.Endpoint.ID, is)
	if err := a.table("", [][]string{
		{"  url", c.URL}, {"  provider", string(c.Endpoint.Provider)}, {"  tenant", string(c.Endpoint.Tenant)},
		{"  key", string(c.Endpoint.Keys[0].Version)},
	}); err != nil {
		return err
	}
	a.printf("Next:\n%s", a.steps(c.Next))
	return nil
}

func (a *app) endpointList() *cobra.Command {
	return a.onOperator(&cobra.Command{
		Use:     "list",
		Short:   "List every endpoint",
		Example: `  dakghar endpoint list --local --json`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		all, err := op.Endpoints(ctx)
		if err != nil {
			return err
		}
		last := map[webhook.EndpointID]time.Time{}
		for _, e := range all {
			if e.ExpectEvery == 0 {
				continue // looking takes a moment, and this one did not ask
			}
			if last[e.ID], err = op.LastEvent(ctx, e); err != nil {
				return err
			}
		}
		return list[webhook.Endpoint]{
			header: "ENDPOINT PROVIDER TENANT STATE CREATED EXPECTED LAST_EVENT URL",
			row: func(e webhook.Endpoint) []string {
				is := "active"
				if !e.PausedAt.IsZero() {
					is = "paused"
				}
				return []string{
					string(e.ID), string(e.Provider), string(e.Tenant), is, when(e.CreatedAt), every(e.ExpectEvery), when(last[e.ID]), op.URL(e.Provider, e.ID),
				}
			},
			view: func(e webhook.Endpoint) any {
				v := endpointJSON(e, op.URL(e.Provider, e.ID))
				if at, expects := last[e.ID]; expects {
					v.LastEventAt = (*stamp)(&at)
				}
				return v
			},
		}.print(a, whole(all), false)
	})
}

func (a *app) endpointShow() *cobra.Command {
	return a.onOperator(&cobra.Command{
		Use:     "show ENDPOINT",
		Short:   "Show one endpoint and its keys, without their values",
		Example: `  dakghar endpoint show demo --local`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		e, keys, err := op.Endpoint(ctx, webhook.EndpointID(args[0]))
		if err != nil {
			return err
		}
		v := endpointJSON(e, op.URL(e.Provider, e.ID))
		last, err := op.LastEvent(ctx, e)
		if err != nil {
			return err
		}
		v.LastEventAt = (*stamp)(&last)
		if list, used := op.Addresses(e); used {
			v.Addresses = addressesJSON(list)
		}
		if a.json {
			for _, k := range keys {
				v.Keys = append(v.Keys, keyJSON(e.ID, k))
			}
			return a.printJSON(v)
		}
		if err := a.table("", append([][]string{
			{"endpoint", string(e.ID)}, {"url", v.URL}, {"provider", string(e.Provider)}, {"tenant", string(e.Tenant)},
			{"scope", string(e.Scope)}, {"types", or(strings.Join(v.Types, ", "), "all that the adapter knows")}, {"keep unknown", yes(e.KeepUnknown)},
			{"overlap", operator.Span(e.Overlap)}, {"secret", e.Secret}, {"created", when(e.CreatedAt)}, {"last event", when(last)},
		}, slices.Concat(settingsRows(e), addressRows(v.Addresses))...)); err != nil {
			return err
		}
		a.printf("\n")
		return a.keyTable(keys, false)
	})
}

// every shows how often something is; never is empty.
func every(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return "every " + operator.Span(d)
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// endpointView is an endpoint in JSON.
type endpointView struct {
	EndpointID  string   `json:"endpoint_id"`
	Provider    string   `json:"provider"`
	Tenant      string   `json:"tenant"`
	Scope       string   `json:"scope"`
	URL         string   `json:"url"`
	Types       []string `json:"types"`
	KeepUnknown bool     `json:"keep_unknown"`
	OverlapS    float64  `json:"overlap_seconds"`
	SecretName  string   `json:"secret_name"`
	KeyVersion  word     `json:"key_version"` // the newest
	CreatedAt   stamp    `json:"created_at"`
	Revision    int64    `json:"revision"`

	PausedAt  stamp                           `json:"paused_at"`
	Rate      int                             `json:"rate"` // 0 is no limit
	Burst     int                             `json:"burst"`
	AllowFrom []string                        `json:"allow_from"` // empty is anywhere
	Policies  map[webhook.Kind]webhook.Policy `json:"policies"`
	API       *apiView                        `json:"api"`
	BackfillS float64                         `json:"backfill_every_seconds"` // 0 is never
	Canary    bool                            `json:"canary"`
	ExpectS   float64                         `json:"expect_every_seconds"` // 0 is for ever

	// LastEventAt is when the provider's last event came; shown with one endpoint, and
	// in a list of those that expect one.
	LastEventAt *stamp `json:"last_event_at,omitempty"`

	// Addresses are what "provider" in AllowFrom stands for; shown with one endpoint.
	Addresses *addressesView `json:"provider_addresses,omitempty"`

	Existed *bool     `json:"existed,omitempty"`
	Keys    []keyView `json:"keys,omitempty"`
}

func endpointJSON(e webhook.Endpoint, url string) endpointView {
	v := endpointView{
		EndpointID: string(e.ID), Provider: string(e.Provider), Tenant: string(e.Tenant), Scope: string(e.Scope), URL: url,
		Types: []string{}, KeepUnknown: e.KeepUnknown, OverlapS: e.Overlap.Seconds(), SecretName: e.Secret,
		CreatedAt: stamp(e.CreatedAt), Revision: e.Revision,
		PausedAt: stamp(e.PausedAt), Rate: e.Rate, Burst: e.Burst, AllowFrom: allowed(e.AllowFrom), Policies: map[webhook.Kind]webhook.Policy{}, API: apiJSON(e.API),
		BackfillS: e.BackfillEvery.Seconds(), Canary: e.Canary, ExpectS: e.ExpectEvery.Seconds(),
	}
	maps.Copy(v.Policies, e.Policies)
	for _, t := range e.Types {
		v.Types = append(v.Types, string(t))
	}
	if len(e.Keys) > 0 {
		v.KeyVersion = word(e.Keys[0].Version)
	}
	return v
}

// keyView is a key in JSON.
type keyView struct {
	EndpointID    string `json:"endpoint_id"`
	Version       string `json:"version"`
	Trust         string `json:"trust"`
	Newest        bool   `json:"newest"`
	Retired       bool   `json:"retired"`
	Adopted       bool   `json:"adopted"`
	AddedAt       stamp  `json:"added_at"`
	FirstMatchAt  stamp  `json:"first_match_at"`
	TrustedUntil  stamp  `json:"trusted_until"`
	LastMatchAt   stamp  `json:"last_match_at"`
	RecentMatches int    `json:"recent_matches"`
}

func keyJSON(e webhook.EndpointID, k operator.Key) keyView {
	return keyView{
		EndpointID: string(e), Version: string(k.Version), Trust: string(k.Trust), Newest: k.Newest,
		Retired: k.Trust == operator.Retired, Adopted: k.Adopted, AddedAt: stamp(k.AddedAt), FirstMatchAt: stamp(k.FirstMatch),
		TrustedUntil: stamp(k.TrustedUntil), LastMatchAt: stamp(k.LastMatch), RecentMatches: k.Matches,
	}
}

// keyTable writes keys for a person, with their matches if they were counted.
func (a *app) keyTable(keys []operator.Key, matches bool) error {
	header := "KEY TRUST ADDED FIRST_MATCH TRUSTED_UNTIL"
	if matches {
		header += " LAST_MATCH RECENT_MATCHES"
	}
	var rows [][]string
	for _, k := range keys {
		until := when(k.TrustedUntil)
		if k.Trust == operator.Trusted && k.TrustedUntil.IsZero() {
			until = "no end"
		}
		row := []string{string(k.Version), string(k.Trust), when(k.AddedAt), when(k.FirstMatch), until}
		if matches {
			row = append(row, when(k.LastMatch), number(k.Matches))
		}
		rows = append(rows, row)
	}
	return a.table(header, rows)
}

// elapsed shows a duration to a person.
func elapsed(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }
