package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dakghar/internal/webhook"
)

// problems collects what is wrong with one declaration.
type problems struct {
	name string
	list []error
}

func (p *problems) refuse(bad bool, format string, args ...any) {
	if bad {
		p.list = append(p.list, fmt.Errorf("provider %s: "+format, append([]any{p.name}, args...)...))
	}
}

// Validate returns everything that is wrong with the declaration.
func (a *Adapter) Validate() error {
	p := &problems{name: string(a.Name)}
	a.validateRequest(p)
	a.validateIdentity(p)
	a.validateKinds(p)
	a.validateRedelivery(p)
	a.validateAPI(p)
	a.validateAddresses(p)
	return errors.Join(p.list...)
}

func (a *Adapter) validateRequest(p *problems) {
	p.refuse(a.Name == "" || strings.Trim(string(a.Name), "abcdefghijklmnopqrstuvwxyz0123456789-") != "", "the name must be lower-case letters, digits and hyphens")
	p.refuse(a.Title == "", "no title")
	p.refuse(a.BodyBytesMax < 1 || a.BodyBytesMax > BodyBytesMax, "a body of at most %d bytes, want 1 to %d", a.BodyBytesMax, BodyBytesMax)
	p.refuse(a.SuccessCode < 200 || a.SuccessCode > 299, "success code %d", a.SuccessCode)
	p.refuse(len(a.ContentTypes) == 0, "no content type")
	for _, ct := range a.ContentTypes {
		p.refuse(!a.AllowsContentType(ct), "content type %q cannot match", ct)
	}
	p.refuse(slices.Contains(a.ContentTypes, formType) != (a.FormField != ""), "a form needs its content type and its field")
	if a.Scheme == nil {
		p.refuse(true, "no signature scheme")
		return
	}
	if err := a.Scheme.Validate(); err != nil {
		p.list = append(p.list, fmt.Errorf("provider %s: %w", a.Name, err))
	}
	p.refuse(a.Covers.Time != a.Scheme.SignsTime(), "Covers.Time is not what the scheme signs")
}

func (a *Adapter) validateIdentity(p *problems) {
	p.refuse(len(a.ID) == 0, "no source of the event id")
	for _, s := range a.ID {
		p.refuse(s.Signed != a.Covers.ID, "Covers.ID differs from an id's source")
		a.validateSource(p, "id", s)
	}
	p.refuse(a.Type.Signed != a.Covers.Type, "Covers.Type differs from the type's source")
	a.validateSource(p, "type", a.Type)
	p.refuse(a.BodyVaries < Never || a.BodyVaries > Unknown, "BodyVaries is not stated")
}

// validateSource holds a source to what the scheme signs: a body always is, a
// header only if it is part of the message.
func (a *Adapter) validateSource(p *problems, what string, s Source) {
	p.refuse(len(s.Parts) == 0, "the %s has no place", what)
	p.refuse(len(s.Parts) > 1 && s.Join == "", "the parts of the %s have nothing between them", what)
	signed := true
	for _, part := range s.Parts {
		p.refuse((part.Header == "") == (part.Path == ""), "a part of the %s needs a header or a path", what)
		p.refuse(part.Header != strings.ToLower(part.Header), "header %q is not lower-case", part.Header)
		if part.Header != "" && (a.Scheme == nil || !a.Scheme.SignsHeader(part.Header)) {
			signed = false
		}
	}
	p.refuse(s.Signed != signed, "the %s says signed %t and is %t", what, s.Signed, signed)
}

func (a *Adapter) validateKinds(p *problems) {
	p.refuse(len(a.Catalogue) == 0 && a.Pattern == nil, "no event types")
	for _, t := range a.Types() {
		p.refuse(len(t) == 0 || len(t) > webhook.EventTypeBytesMax, "type %q is too long", t)
		a.validateKind(p, string(t), a.Catalogue[t])
	}
	if a.Pattern != nil {
		s := a.Pattern.String()
		p.refuse(!strings.HasPrefix(s, "^") || !strings.HasSuffix(s, "$"), "the pattern does not match whole types")
		a.validateKind(p, "pattern", a.PatternKind)
	}
}

func (a *Adapter) validateKind(p *problems, t string, k Kind) {
	// Bytes under a fresh id are known again only as long as the first ones are
	// kept; what adds up would be applied twice after that.
	p.refuse(k.Delta && !a.Covers.ID, "%s adds up, and the sender does not sign its event id", t)
	p.refuse(!strings.HasPrefix(string(k.Name), string(k.Object)+"."), "%s: kind %q is not one of a %q", t, k.Name, k.Object)
	p.refuse(!slices.Contains([]webhook.Policy{webhook.ByVersion, webhook.Monotonic, webhook.ByFetch, webhook.BySequence}, k.Policy), "%s: policy %q", t, k.Policy)
	p.refuse(k.Policy == webhook.ByFetch && k.Current == nil, "%s: fetched, and nobody says how", t)
	p.refuse(k.Credit < -1 || k.Credit > 1, "%s: credit %d", t, k.Credit)
	p.refuse(k.Credit != 0 && k.State == "", "%s: a credit without a state", t)
	p.refuse(!a.Covers.Type && len(k.Shape) == 0, "%s: the type is not signed and the body has no shape", t)
	r := k.Read
	if r == nil {
		p.refuse(true, "%s: no reading", t)
		return
	}
	p.refuse(len(r.ID) == 0, "%s: no object id", t)
	numbered := k.Policy == webhook.ByVersion || k.Policy == webhook.BySequence
	p.refuse(numbered && len(r.Version) == 0, "%s: no version", t)
	p.refuse(!numbered && len(r.Version) != 0, "%s: a version that decides nothing", t)
	p.refuse((len(r.Amount) == 0) != (len(r.Currency) == 0), "%s: an amount and a currency go together", t)
	p.refuse(r.Text && r.Decimal, "%s: an amount in minor and in major units", t)
	p.refuse(k.Credit != 0 && len(r.Amount) == 0 && r.Sum == nil, "%s: a credit without an amount", t)
	p.refuse(len(r.Sample) == 0, "%s: no sample", t)
}

func (a *Adapter) validateRedelivery(p *problems) {
	r := a.Redelivery
	p.refuse(len(r.Sources) == 0, "no sources of its redelivery facts")
	p.refuse((r.AutomaticFor == 0) != (r.SameIDOnRetry == None), "automatic retries: how long, and does the id stay?")
	p.refuse((r.ManualFor == 0) != (r.SameIDOnManual == None), "manual redelivery: how long, and does the id stay?")
	p.refuse(r.SameIDOnRetry == 0 || r.SameIDOnManual == 0, "whether the id stays is not stated")
	p.refuse(a.Ordering == "", "no word on ordering")
	p.refuse(a.Overlap <= 0, "no overlap for rotation")
}
