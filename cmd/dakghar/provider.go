package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/egress"
	"dakghar/internal/fault"
	"dakghar/internal/operator"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
)

func (a *app) providerCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "provider",
		Short: "See which providers are known, and what is known of each",
		Long: `An adapter says how one provider signs, sends again and names its events. These commands
print what the adapters of this build say, with the pages where it was read; they need no
stack.`,
		Example: `  dakghar provider list
  dakghar provider show stripe
  dakghar provider addresses github --check`,
	}, a.providerList(), a.providerShow(), a.providerAddresses())
}

func (a *app) providerList() *cobra.Command {
	return a.command(&cobra.Command{
		Use:     "list",
		Short:   "List the providers",
		Example: `  dakghar provider list --json`,
	}, func(context.Context, []string) error {
		return list[*provider.Adapter]{
			header: "PROVIDER TITLE TYPES REPEATS-WITHIN FETCH BACKFILL ADDRESSES",
			row: func(p *provider.Adapter) []string {
				v := providerJSON(p)
				return []string{
					v.Provider, v.Title, number(len(v.Types)), round(p.Redelivery.Window()), yes(v.ReadsObjects), yes(v.ListsEvents), number(len(p.Addresses.List())),
				}
			},
			view: func(p *provider.Adapter) any { return providerJSON(p) },
		}.print(a, whole(all.Adapters()), false)
	})
}

func (a *app) providerShow() *cobra.Command {
	return a.command(&cobra.Command{
		Use:     "show NAME",
		Short:   "Show what is known of a provider, and the event types that it sends",
		Example: `  dakghar provider show stripe`,
	}, func(_ context.Context, args []string) error {
		p, err := findProvider(args[0])
		if err != nil {
			return err
		}
		v := providerJSON(p)
		if a.json {
			return a.printJSON(v)
		}
		rows := [][]string{
			{"provider", v.Provider}, {"title", v.Title}, {"signature in", v.SignatureHeader}, {"it covers", v.covers()}, {"clock", v.clock()},
			{"body", fmt.Sprintf("%d KiB at most, %s", p.BodyBytesMax>>10, strings.Join(v.ContentTypes, ", "))},
			{"sends again", v.retries()}, {"by hand", string(v.ByHand)}, {"order", v.Order}, {"old key", "trusted for " + round(p.Overlap) + " after the new one first matched"},
			{"objects", "read at its API: " + yes(v.ReadsObjects)}, {"back-fill", v.backfill()},
		}
		for _, value := range v.Account {
			rows = append(rows, []string{"--api-account", value.Name + ": " + value.About})
		}
		rows = append(rows, addressRows(v.Addresses)...)
		for _, source := range v.Sources {
			rows = append(rows, []string{"read at", source})
		}
		if err := a.table("", rows); err != nil {
			return err
		}
		a.printf("\n")
		rows = nil
		for _, t := range v.Types {
			rows = append(rows, []string{t.Type, t.Kind, t.Object, t.Order, yes(t.Fetched)})
		}
		return a.table("TYPE KIND OBJECT ORDER FETCH", rows)
	})
}

func (a *app) providerAddresses() *cobra.Command {
	var check bool
	c := a.command(&cobra.Command{
		Use:   "addresses NAME",
		Short: "Show from where a provider sends, and whether its list has changed",
		Long: `An endpoint with --allow-from provider takes requests from the addresses in this build's
list alone. A provider changes its addresses: one that is missing here has its events
refused. --check reads the list that the provider publishes today, over the network, and
shows the differences; it exits with 1 where an address is missing here.`,
		Example: `  dakghar provider addresses stripe
  dakghar provider addresses stripe --check`,
	}, func(ctx context.Context, args []string) error {
		p, err := findProvider(args[0])
		switch {
		case err != nil:
			return err
		case p.Addresses == nil:
			return &operator.Refusal{Code: "addresses_unknown", Problem: p.Title + " says nothing of the addresses that it sends from, as far as this build knows"}
		case check:
			return a.checkAddresses(ctx, p)
		case a.json:
			return a.printJSON(addressesJSON(*p.Addresses))
		}
		for _, prefix := range addressesJSON(*p.Addresses).Prefixes {
			a.printf("%s\n", prefix)
		}
		return nil
	})
	c.Flags().BoolVar(&check, "check", false, "compare it with what the provider publishes today")
	return c
}

// addressCheckView is what a published list and this build's have apart.
type addressCheckView struct {
	Provider string   `json:"provider"`
	URL      string   `json:"url"`
	AsOf     string   `json:"as_of"` // of this build's
	Missing  []string `json:"missing"`
	Gone     []string `json:"gone"`
}

func (a *app) checkAddresses(ctx context.Context, p *provider.Adapter) error {
	list := *p.Addresses
	if list.Published == nil {
		return &operator.Refusal{
			Code: "addresses_unpublished", Problem: p.Title + " publishes its addresses on a page for people only",
			Next: []operator.Step{{Text: "compare what the command prints without --check with " + list.Sources[0]}},
		}
	}
	answer, err := a.get(ctx, list.Published.URL)
	if err != nil {
		return &operator.Refusal{
			Code: "addresses_unreachable", Problem: "the list at " + list.Published.URL + " could not be read: " + fault.CodeOf(err),
			Next: []operator.Step{{Text: "try again later, or look at " + list.Sources[len(list.Sources)-1]}},
		}
	}
	missing, gone, err := list.Compare(answer)
	if err != nil {
		return &operator.Refusal{
			Code: "addresses_unreadable", Problem: "what stands at " + list.Published.URL + " is no list that the adapter knows: " + fault.CodeOf(err),
			Next: []operator.Step{{Text: "look at it yourself, and tell the adapter's author"}},
		}
	}
	v := addressCheckView{string(p.Name), list.Published.URL, list.AsOf.Format(time.DateOnly), prefixTexts(missing), prefixTexts(gone)}
	if err := a.showAddressCheck(v); err != nil || len(missing) == 0 {
		return err
	}
	return errSaid
}

func (a *app) showAddressCheck(v addressCheckView) error {
	if a.json {
		return a.printJSON(v)
	}
	if len(v.Missing)+len(v.Gone) == 0 {
		a.printf("the same as at %s\n", v.URL)
		return nil
	}
	var rows [][]string
	for _, prefix := range v.Missing {
		rows = append(rows, []string{prefix, "missing here: its events are refused"})
	}
	for _, prefix := range v.Gone {
		rows = append(rows, []string{prefix, "no longer published"})
	}
	if err := a.table("", rows); err != nil || len(v.Missing) == 0 {
		return err
	}
	a.printf("\nUntil a build has them, allow them besides, at each endpoint with --allow-from provider:\n\n  %s\n",
		strings.Join([]string{"dakghar endpoint update ENDPOINT --allow-from", strings.Join(append([]string{operator.FromProvider}, v.Missing...), ","), "--reason '…'"}, " "))
	return nil
}

func prefixTexts(prefixes []netip.Prefix) []string {
	texts := []string{}
	for _, p := range prefixes {
		texts = append(texts, prefixText(p.String()))
	}
	return texts
}

// get reads a page of the public web.
func get(ctx context.Context, url string) ([]byte, error) {
	answer, err := egress.New(egress.Config{}).Do(ctx, egress.Request{
		Method: http.MethodGet, URL: url, Header: http.Header{"User-Agent": {"dakghar"}, "Accept": {"application/json"}},
	})
	switch {
	case err != nil:
		return nil, err
	case answer.Status != http.StatusOK:
		return nil, fault.New(fault.Theirs, fmt.Sprint("status_", answer.Status), nil)
	}
	return answer.Body, nil
}

func findProvider(name string) (*provider.Adapter, error) {
	var names []string
	for _, p := range all.Adapters() {
		if string(p.Name) == name {
			return p, nil
		}
		names = append(names, string(p.Name))
	}
	return nil, &operator.Refusal{
		Code: "provider_unknown", Usage: true, Problem: "there is no provider " + name + "; there are " + strings.Join(names, ", "),
	}
}

// providerView is an adapter in JSON.
type providerView struct {
	Provider        string         `json:"provider"`
	Title           string         `json:"title"`
	SignatureHeader string         `json:"signature_header"`
	Covers          coversView     `json:"covers"`
	ToleranceS      *float64       `json:"tolerance_s"` // null where no signed time is judged
	BodyBytesMax    int            `json:"body_bytes_max"`
	ContentTypes    []string       `json:"content_types"`
	Retries         word           `json:"retries"` // null where it never does
	ByHand          word           `json:"by_hand"`
	WindowS         float64        `json:"window_s"`
	Order           string         `json:"order"`
	OverlapS        float64        `json:"overlap_s"`
	ReadsObjects    bool           `json:"reads_objects"`
	ListsEvents     bool           `json:"lists_events"`
	ReachS          *float64       `json:"reach_s"` // of what it lists; null where nothing is stated
	Account         []apiValueView `json:"account"`
	Addresses       *addressesView `json:"addresses"`
	Types           []typeView     `json:"types"`
	Sources         []string       `json:"sources"`
}

type coversView struct {
	ID   bool `json:"id"`
	Type bool `json:"type"`
	Time bool `json:"time"`
}

type apiValueView struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// typeView is an event type: what it means here, and what decides its order.
type typeView struct {
	Type    string `json:"type"`
	Kind    string `json:"kind"`
	Object  string `json:"object"`
	Order   string `json:"order"`
	Fetched bool   `json:"fetched"` // its object can be
}

func providerJSON(p *provider.Adapter) providerView {
	v := providerView{
		Provider: string(p.Name), Title: p.Title, SignatureHeader: p.Scheme.Signature.Header, Covers: coversView(p.Covers),
		BodyBytesMax: p.BodyBytesMax, ContentTypes: p.ContentTypes,
		Retries: word(p.Redelivery.Automatic), ByHand: word(p.Redelivery.Manual), WindowS: p.Redelivery.Window().Seconds(),
		Order: p.Ordering, OverlapS: p.Overlap.Seconds(), Account: []apiValueView{}, Types: typesJSON(p), Sources: slices.Clone(p.Redelivery.Sources),
	}
	v.ReadsObjects = slices.ContainsFunc(v.Types, func(t typeView) bool { return t.Fetched })
	if at := p.Scheme.Timestamp; at.Past > 0 {
		v.ToleranceS = seconds(at.Past)
	}
	if p.Addresses != nil {
		v.Addresses = addressesJSON(*p.Addresses)
	}
	if p.API == nil {
		return v
	}
	v.ListsEvents = len(p.API.Histories) > 0
	if p.API.Reach > 0 {
		v.ReachS = seconds(p.API.Reach)
	}
	for _, value := range p.API.Account {
		v.Account = append(v.Account, apiValueView{value.Name, value.About})
	}
	v.Sources = append(v.Sources, p.API.Sources...)
	slices.Sort(v.Sources)
	v.Sources = slices.Compact(v.Sources)
	return v
}

func typesJSON(p *provider.Adapter) []typeView {
	types := []typeView{}
	of := func(t string, k provider.Kind) {
		types = append(types, typeView{t, string(k.Name), string(k.Object), string(k.Policy), k.Current != nil})
	}
	for _, t := range p.Types() {
		of(string(t), p.Catalogue[t])
	}
	if p.Pattern != nil {
		of(p.Pattern.String(), p.PatternKind)
	}
	return types
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

func (v providerView) covers() string {
	var covered []string
	for _, part := range []struct {
		name string
		is   bool
	}{{"id", v.Covers.ID}, {"type", v.Covers.Type}, {"time", v.Covers.Time}} {
		if part.is {
			covered = append(covered, part.name)
		}
	}
	if len(covered) == 0 {
		return "the body alone; id, type and time stand outside it"
	}
	return "the body, and the event's " + strings.Join(covered, ", ")
}

func (v providerView) retries() string {
	if v.Retries == "" {
		return "never by itself"
	}
	return string(v.Retries)
}

func (v providerView) clock() string {
	if v.ToleranceS == nil {
		return "no signed time is judged"
	}
	return round(time.Duration(*v.ToleranceS*float64(time.Second))) + " off at most"
}

func (v providerView) backfill() string {
	switch {
	case !v.ListsEvents:
		return "no: it lists nothing"
	case v.ReachS == nil:
		return "yes, without a stated limit"
	}
	return "yes, " + round(time.Duration(*v.ReachS*float64(time.Second))) + " back"
}
