package provider

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// SampleOptions says what a sample event is like. Nothing is drawn at random:
// the same options give the same bytes.
type SampleOptions struct {
	Type webhook.EventType // required, and allowed by the adapter
	// EventID is the sender's id; where that is joined from several parts, its
	// last part.
	EventID string
	// ObjectID, ParentID, State, Amount (minor units) and Currency replace what
	// the sample would show by itself. State is one of our words, and only for
	// types whose body decides the state.
	ObjectID, ParentID, State string
	Amount                    int64
	Currency                  string
	// Version is the object's version, or its round; zero leaves the sample's, and a
	// sample that has none keeps none.
	Version int64
	// At is the event's time by the sender's clock; zero leaves the sample's.
	At time.Time
	// BodyBytes pads the body to this many bytes; less than it has is ignored.
	BodyBytes int
}

// Sample is a made-up event. Header holds what stands beside the signature;
// sign the body with [signature.Scheme.Sign] and add those headers.
type Sample struct {
	Header signature.Header
	Body   []byte
}

// Sample makes an event that the adapter accepts, or says why it cannot.
func (a *Adapter) Sample(o SampleOptions) (Sample, error) {
	k, ok := a.Kind(o.Type)
	if !ok {
		return Sample{}, fmt.Errorf("provider %s: type %q is not in the catalogue", a.Name, o.Type)
	}
	doc, err := parseDocument(k.Read.Sample)
	if err != nil {
		return Sample{}, err
	}
	h := signature.Header{"content-type": a.ContentTypes[0]}
	a.identify(doc, h, o)
	if o.At.IsZero() {
		o.At = doc.time(a.Created)
	}
	doc.show(k.Shape, o.At)
	doc.show(k.Example, o.At)
	if err := doc.describe(k, o); err != nil {
		return Sample{}, err
	}
	s := Sample{Header: h, Body: pad(doc.bytes(), o.EventID, o.BodyBytes)}
	e, err := a.Envelope(h, s.Body)
	if err != nil {
		return Sample{}, fmt.Errorf("provider %s: these options make no valid event: %w", a.Name, err)
	}
	if e.Type != o.Type {
		return Sample{}, fmt.Errorf("provider %s: the sample of %s came out as %s", a.Name, o.Type, e.Type)
	}
	f, err := a.Facts(k, o.Type, s.Body)
	if err != nil {
		return Sample{}, fmt.Errorf("provider %s: these options make no valid event: %w", a.Name, err)
	}
	if o.State != "" && f.State != o.State {
		return Sample{}, fmt.Errorf("provider %s: an event of type %s cannot show the state %q", a.Name, o.Type, o.State)
	}
	return s, nil
}

// identify writes id, type and time where the adapter reads them.
func (a *Adapter) identify(doc *document, h signature.Header, o SampleOptions) {
	a.Type.writeType(doc, h, string(o.Type))
	parts := a.ID[0].Parts
	for i, p := range parts {
		switch {
		case i == len(parts)-1 && o.EventID != "":
			p.write(doc, h, o.EventID)
		case p.Header != "" && h[p.Header] == "":
			h[p.Header] = cmp.Or(p.Example, "sample")
		}
	}
	if !o.At.IsZero() {
		doc.setTime(a.Created, o.At)
	}
}

// writeType spreads a type over its parts: the first takes what stands before
// the first separator, an optional second one the rest.
func (s Source) writeType(doc *document, h signature.Header, text string) {
	if len(s.Parts) == 1 {
		s.Parts[0].write(doc, h, text)
		return
	}
	first, rest, more := strings.Cut(text, s.Join)
	s.Parts[0].write(doc, h, first)
	if more {
		s.Parts[1].write(doc, h, rest)
	}
}

func (p Place) write(doc *document, h signature.Header, text string) {
	if p.Header != "" {
		h[p.Header] = text
		return
	}
	doc.set(p.Path, text)
}

// describe writes the facts that the options ask for.
func (d *document) describe(k Kind, o SampleOptions) error {
	r := k.Read
	if o.ObjectID != "" {
		d.replace(r.ID, strings.TrimPrefix(o.ObjectID, r.IDPrefix))
	}
	if o.ParentID != "" {
		d.replace(r.Parent, o.ParentID)
	}
	if o.Version > 0 {
		d.number(slices.Concat(r.Version, r.Round), o.Version)
	}
	d.pay(r, o)
	if o.State == "" || o.State == k.State {
		return nil
	}
	for _, rule := range r.States {
		if rule.State == o.State && k.State == "" {
			d.show(rule.When, o.At)
			return nil
		}
	}
	return fmt.Errorf("provider: an event of type %s cannot show the state %q", o.Type, o.State)
}

// replace writes at the first of the paths that the sample has, or else at the first.
func (d *document) replace(paths []string, text string) {
	if len(paths) == 0 {
		return
	}
	at := paths[0]
	for _, p := range paths {
		if there := d.find(p); there != nil && there.kind != 'n' {
			at = p
			break
		}
	}
	d.set(at, text)
}

// number writes a version or a round at the first of the paths that the sample
// has, as a time where one stands. What has come to its end may have none.
func (d *document) number(paths []string, n int64) {
	for _, p := range paths {
		switch there := d.find(p); {
		case there == nil || there.kind == 'n':
			continue
		case there.kind == '"':
			d.set(p, time.Unix(n, 0).UTC().Format(time.RFC3339))
		default:
			d.set(p, strconv.FormatInt(n, 10))
		}
		return
	}
}

func (d *document) pay(r *Reading, o SampleOptions) {
	amounts, currencies := r.Amount, r.Currency
	if r.Sum != nil {
		amounts, currencies = []string{r.Sum.Array + ".0." + r.Sum.Amount}, []string{r.Sum.Array + ".0." + r.Sum.Currency}
	}
	if o.Currency != "" {
		d.replace(currencies, o.Currency)
	}
	if o.Amount <= 0 || len(amounts) == 0 {
		return
	}
	text := strconv.FormatInt(o.Amount, 10)
	if r.Decimal || r.Sum != nil {
		text = majorUnits(o.Amount, d.currency(currencies))
	}
	// An amount is often shown more than once; one that differs from the others
	// would be no event that the sender makes.
	for _, p := range amounts {
		if there := d.find(p); there != nil && there.kind != 'n' {
			d.set(p, text)
		}
	}
}

func (d *document) currency(paths []string) string {
	for _, p := range paths {
		if there := d.find(p); there != nil && there.kind == '"' {
			return strings.ToUpper(strings.Trim(there.rawValue, `"`))
		}
	}
	return ""
}

// show makes the checks hold. What must only be there becomes a time.
func (d *document) show(checks []Check, at time.Time) {
	for _, c := range checks {
		there := d.find(c.Path)
		has := there != nil && there.kind != 'n'
		switch {
		case c.Absent && has:
			d.setNull(c.Path)
		case c.Absent || len(c.Is) == 0 && has:
		case len(c.Is) == 0:
			d.set(c.Path, at.UTC().Format(time.RFC3339))
		default:
			d.set(c.Path, c.Is[0])
		}
	}
}

// setTime writes a time at the paths that the sample has, in the form that stands there.
func (d *document) setTime(paths []string, at time.Time) {
	for _, p := range paths {
		switch there := d.find(p); {
		case there == nil:
		case there.kind == '0':
			d.set(p, strconv.FormatInt(at.Unix(), 10))
		default:
			d.set(p, at.UTC().Format(time.RFC3339))
		}
	}
}

// time returns the time that the sample has.
func (d *document) time(paths []string) time.Time {
	for _, p := range paths {
		if there := d.find(p); there != nil {
			return timeOf(leaf{kind: there.kind, text: strings.Trim(there.rawValue, `"`)})
		}
	}
	return time.Unix(0, 0).UTC()
}

// padding is the name of the member that fills a body. It takes this many bytes
// besides the filling.
const (
	padding      = "dakghar_padding"
	paddingBytes = len(`,"` + padding + `":""`)
)

// pad fills a body up to n bytes with text that compresses no better than most:
// digests of the event id.
func pad(body []byte, eventID string, n int) []byte {
	fill := n - len(body) - paddingBytes
	if fill < 0 {
		return body
	}
	text := make([]byte, 0, fill+2*sha256.Size)
	var counter [8]byte
	for i := uint64(0); len(text) < fill; i++ {
		binary.BigEndian.PutUint64(counter[:], i)
		sum := sha256.Sum256(append([]byte(eventID), counter[:]...))
		text = hex.AppendEncode(text, sum[:])
	}
	padded := append(body[:len(body)-1:len(body)-1], `,"`+padding+`":"`...)
	padded = append(padded, text[:fill]...)
	return append(padded, `"}`...)
}
