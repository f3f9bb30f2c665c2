package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

func number(n int) string { return strconv.Itoa(n) }

func (a *app) secretCommand() *cobra.Command {
	return a.onStack(a.group(&cobra.Command{
		Use:   "secret",
		Short: "Turn the keys of endpoints over",
		Long: `A planned rotation: "secret rotate" adds the provider's new secret beside the old
one, both verify; make the provider sign with the new one; see it match with
"secret list"; the old one then ends by itself after the endpoint's overlap, or
sooner with "secret finish".

A leaked secret: "secret retire --now" it, then "secret put" a fresh one.`,
		Example: `  dakghar secret list --local --endpoint demo`,
	}, a.secretPut(), a.secretRotate(), a.secretFinish(), a.secretRetire(), a.secretList()))
}

func (a *app) secretPut() *cobra.Command {
	return a.adding(&cobra.Command{
		Use:   "put",
		Short: "Give a key to an endpoint that trusts none",
		Long: `Give a key to an endpoint whose keys were all retired, after a leak for example.
Where a key is trusted, use rotate: it keeps both.`,
		Example: `  dakghar secret put --local --endpoint demo --secret-file new.txt`,
	}, (*operator.Operator).PutFirst)
}

func (a *app) secretRotate() *cobra.Command {
	return a.adding(&cobra.Command{
		Use:   "rotate",
		Short: "Add a key beside those in use; all verify",
		Long: `Add the provider's new signing secret. The previous one stays trusted until the
endpoint's overlap after the new one's first match. Running it again changes nothing.`,
		Example: `  dakghar secret rotate --local --endpoint demo --secret-file new.txt`,
	}, (*operator.Operator).Rotate)
}

type addKey = func(*operator.Operator, context.Context, webhook.EndpointID, operator.Secret, string) (operator.Added, error)

// adding finishes a command that adds a key.
func (a *app) adding(c *cobra.Command, add addKey) *cobra.Command {
	var endpoint, file, why string
	c = a.command(c, func(ctx context.Context, _ []string) error {
		op, err := a.operator(ctx)
		if err != nil {
			return err
		}
		s, err := a.readSecret(file)
		if err != nil {
			return err
		}
		added, err := add(op, ctx, webhook.EndpointID(endpoint), s, why)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(struct {
				EndpointID string `json:"endpoint_id"`
				Version    string `json:"version"`
				Existed    bool   `json:"existed"`
			}{string(added.Endpoint.ID), string(added.Version), added.Existed})
		}
		did := "trusts the new key"
		if added.Existed {
			did = "trusted this key already, as its newest:"
		}
		a.printf("Endpoint %s %s %s.\nNext:\n%s", added.Endpoint.ID, did, added.Version, a.steps(added.Next))
		return nil
	})
	c.Flags().StringVar(&endpoint, "endpoint", "", "the endpoint's id")
	c.Flags().StringVar(&file, "secret-file", "", "file with the provider's new signing secret, - for standard input")
	c.Flags().StringVar(&why, "reason", "", "why, for the record")
	return required(c, "endpoint", "secret-file")
}

func (a *app) secretFinish() *cobra.Command {
	var (
		endpoint, why string
		sure          bool
	)
	c := a.onOperator(&cobra.Command{
		Use:   "finish",
		Short: "End a rotation: only the newest key is trusted from here on",
		Long: `End the overlap of every key but the newest, before it ends by itself. It is refused
until the newest key was seen to match. Every process refuses the ended keys within
30 seconds; they stay listed, and "secret retire" forgets them.`,
		Example: `  dakghar secret finish --local --endpoint demo --reason "rotation done"`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		plan, err := op.PlanFinish(ctx, webhook.EndpointID(endpoint))
		if err != nil {
			return err
		}
		for _, w := range plan.Warnings {
			a.notef("Warning: %s.\n", w)
		}
		again := operator.Step{Text: "to end it without being asked:", Command: []string{"secret", "finish", "--endpoint", endpoint, "--yes"}}
		if err := a.agreed(sure || plan.Existed, "End "+joined(plan.Ended)+" of endpoint "+endpoint+".", "ended", again); err != nil {
			return err
		}
		done, err := op.Finish(ctx, webhook.EndpointID(endpoint), why)
		if err != nil {
			return err
		}
		return a.showFinished(plan, done)
	})
	f := c.Flags()
	f.StringVar(&endpoint, "endpoint", "", "the endpoint's id")
	f.StringVar(&why, "reason", "", "why, for the record")
	f.BoolVar(&sure, "yes", false, "do not ask")
	return required(c, "endpoint")
}

func (a *app) showFinished(plan, done operator.Finished) error {
	if a.json {
		return a.printJSON(struct {
			EndpointID string               `json:"endpoint_id"`
			Version    string               `json:"version"`
			Ended      []webhook.KeyVersion `json:"ended"`
			Existed    bool                 `json:"existed"`
			WithinS    float64              `json:"effective_within_seconds"`
			Warnings   []string             `json:"warnings"`
		}{
			string(done.Endpoint), string(done.Newest), append([]webhook.KeyVersion{}, done.Ended...), done.Existed, operator.RetireWithin.Seconds(),
			append([]string{}, plan.Warnings...),
		})
	}
	if done.Existed {
		a.printf("Endpoint %s trusted only %s already.\n", done.Endpoint, done.Newest)
		return nil
	}
	a.printf("Endpoint %s trusts %s only. Every process refuses %s within %.0f s.\nNext:\n%s", done.Endpoint, done.Newest, joined(done.Ended),
		operator.RetireWithin.Seconds(), a.steps([]operator.Step{
			{Text: "see what is trusted now:", Command: []string{"secret", "list", "--endpoint", string(done.Endpoint)}},
		}))
	return nil
}

func (a *app) secretRetire() *cobra.Command {
	var (
		endpoint, version, why string
		sure, emergency        bool
	)
	c := a.onOperator(&cobra.Command{
		Use:   "retire",
		Short: "End trust in a key, for good",
		Long: `Take a key off the endpoint's list. Every process refuses it within 30 seconds,
whether Secrets Manager answers or not, and it can never be trusted again. It asks
before it acts.

Without --now it is for a key that is no longer used: it is refused while the key is
the only trusted one, while the newest event was signed with it, and while a newer
one has not matched. --now is for a key that leaked: nothing but your yes is waited
for, and whatever is still signed with the key is refused.`,
		Example: `  dakghar secret retire --local --endpoint demo --version k1
  dakghar secret retire --stack prod --endpoint live --version k1 --now --reason "leaked in a log" --yes`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		plan, err := op.PlanRetire(ctx, webhook.EndpointID(endpoint), version, emergency)
		if err != nil {
			return err
		}
		for _, w := range plan.Warnings {
			a.notef("Warning: %s.\n", w)
		}
		again := operator.Step{Text: "to retire it without being asked:", Command: []string{"secret", "retire", "--endpoint", endpoint, "--version", string(plan.Version), "--yes"}}
		if emergency {
			again.Command = append(again.Command, "--now")
		}
		if err := a.agreed(sure || plan.Existed, "Retire "+string(plan.Version)+" of endpoint "+endpoint+".", "retired", again); err != nil {
			return err
		}
		done, err := op.Retire(ctx, webhook.EndpointID(endpoint), plan.Version, why)
		if err != nil {
			return err
		}
		return a.showRetired(plan, done, emergency)
	})
	f := c.Flags()
	f.StringVar(&endpoint, "endpoint", "", "the endpoint's id")
	f.StringVar(&version, "version", "", "the key version, or its beginning (see secret list)")
	f.StringVar(&why, "reason", "", "why, for the record")
	f.BoolVar(&sure, "yes", false, "do not ask")
	f.BoolVar(&emergency, "now", false, "it leaked: end it at once, even if events are signed with it")
	return required(c, "endpoint", "version")
}

func (a *app) showRetired(plan, done operator.Retirement, emergency bool) error {
	if a.json {
		warnings := append([]string{}, plan.Warnings...)
		return a.printJSON(struct {
			EndpointID string   `json:"endpoint_id"`
			Version    string   `json:"version"`
			Existed    bool     `json:"existed"`
			WithinS    float64  `json:"effective_within_seconds"`
			LabelKept  bool     `json:"label_kept"`
			Warnings   []string `json:"warnings"`
		}{string(done.Endpoint), string(done.Version), done.Existed, operator.RetireWithin.Seconds(), done.LabelKept, warnings})
	}
	if done.Existed {
		a.printf("Key %s of endpoint %s was retired before.\n", done.Version, done.Endpoint)
	} else {
		a.printf("Key %s of endpoint %s is retired. Every process refuses it within %.0f s; a request that began before that may still be accepted.\n", done.Version, done.Endpoint, operator.RetireWithin.Seconds())
	}
	if done.LabelKept {
		a.printf("Secrets Manager did not answer and keeps the version; trust ended all the same. Run this again later to let it go.\n")
	}
	next := []operator.Step{{Text: "see what is trusted now:", Command: []string{"secret", "list", "--endpoint", string(done.Endpoint)}}}
	if emergency {
		next = append(next, operator.LetIn(done.Endpoint, done.Version)...)
	}
	a.printf("Next:\n%s", a.steps(next))
	return nil
}

func (a *app) secretList() *cobra.Command {
	var (
		endpoint string
		ids      bool
	)
	c := a.command(&cobra.Command{
		Use:   "list",
		Short: "List an endpoint's key versions, without their values",
		Long: `List the key versions: which verify, since when, until when, and what they signed
among the endpoint's ` + number(operator.MatchesLooked) + ` newest events of the last 7 days. That list is eventually
consistent: an event of the last second may not count yet.`,
		Example: `  dakghar secret list --local --endpoint demo --json
  dakghar secret list --local --endpoint demo --ids`,
	}, func(ctx context.Context, _ []string) error {
		if err := a.idsAlone(ids); err != nil {
			return err
		}
		op, err := a.operator(ctx)
		if err != nil {
			return err
		}
		keys, err := op.Keys(ctx, webhook.EndpointID(endpoint))
		if err != nil {
			return err
		}
		if !a.json && !ids {
			return a.keyTable(keys, true)
		}
		for _, k := range keys {
			if ids {
				a.printf("%s\n", k.Version)
				continue
			}
			if err := a.printJSON(keyJSON(webhook.EndpointID(endpoint), k)); err != nil {
				return err
			}
		}
		return nil
	})
	c.Flags().StringVar(&endpoint, "endpoint", "", "the endpoint's id")
	c.Flags().BoolVar(&ids, "ids", false, "print the versions alone, one a line, the newest first")
	return required(c, "endpoint")
}
