package operator

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// sampler makes the distinct events of a traffic. The same traffic makes the
// same events on every run and every machine, so that sending it again is
// sending duplicates.
type sampler struct {
	adapter  *provider.Adapter
	endpoint webhook.Endpoint
	traffic  Traffic
	// eventID and objectID are what an event of this type has for them, as patterns.
	eventID, objectID string
}

// sample is one event, not signed yet.
type sample struct {
	header  signature.Header
	body    []byte
	eventID webhook.EventID // as the front door will read it
}

func newSampler(a *provider.Adapter, e webhook.Endpoint, t Traffic) (*sampler, error) {
	if !t.At.IsZero() {
		t.At = t.At.Round(0).UTC() // the same moment, written in one way
	}
	s := &sampler{adapter: a, endpoint: e, traffic: t}
	if t.Type == "" {
		return nil, misuse("--type says which event to send: dakghar provider show " + string(a.Name) + " lists the types")
	}
	pattern, err := a.Sample(provider.SampleOptions{Type: t.Type})
	if err != nil {
		return nil, misuse(noType(a, t.Type))
	}
	envelope, err := a.Envelope(pattern.Header, pattern.Body)
	if err != nil {
		return nil, err
	}
	s.eventID, s.objectID = string(envelope.EventID), envelope.ObjectID
	if id := a.ID[0]; len(id.Parts) > 1 { // of a joined id the last part is ours to choose
		s.eventID = s.eventID[strings.LastIndex(s.eventID, id.Join)+len(id.Join):]
	}
	if _, err := s.event(0); err != nil {
		return nil, misuse(strings.TrimPrefix(err.Error(), "provider "))
	}
	return s, nil
}

// event returns the n-th distinct event.
func (s *sampler) event(n int) (sample, error) {
	t := s.traffic
	o := provider.SampleOptions{
		Type: t.Type, EventID: t.EventID, ObjectID: t.ObjectID, State: t.State,
		Amount: t.Amount, Currency: t.Currency, Version: t.Version, At: t.At, BodyBytes: t.BodyBytes,
	}
	if len(t.Versions) > 0 {
		o.Version = t.Versions[n]
		n = 0 // versions are of one object
	}
	// Events of different types about one object share its number, so that a
	// payment's processing and succeeded belong together.
	if o.ObjectID == "" && s.objectID != "" {
		o.ObjectID = like(s.objectID, s.digest("object", n))
	}
	if o.EventID == "" {
		o.EventID = like(s.eventID, s.digest("event", n, o))
	}
	made, err := s.adapter.Sample(o)
	if err != nil {
		return sample{}, err
	}
	envelope, err := s.adapter.Envelope(made.Header, made.Body)
	return sample{header: made.Header, body: made.Body, eventID: envelope.EventID}, err
}

func (s *sampler) digest(parts ...any) [sha256.Size]byte {
	all := append([]any{s.traffic.Seed, s.endpoint.ID, s.adapter.Name}, parts...)
	return sha256.Sum256(fmt.Appendf(nil, "%q", fmt.Sprintf("%+v", all)))
}

// like makes an id that looks like another: a number for a number, a UUID for a
// UUID, and otherwise the same beginning.
func like(pattern string, digest [sha256.Size]byte) string {
	prefix, rest := "", pattern
	if i := strings.LastIndexAny(pattern, "_:/|"); i >= 0 {
		prefix, rest = pattern[:i+1], pattern[i+1:]
	}
	switch {
	case rest != "" && strings.Trim(rest, "0123456789") == "":
		const twelveDigits = 1e11
		return fmt.Sprintf("%s%d", prefix, twelveDigits+binary.BigEndian.Uint64(digest[:8])%(9*twelveDigits))
	case prefix == "" && (strings.Count(rest, "-") == 4 || rest == "sample"):
		h := hex.EncodeToString(digest[:16])
		return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
	}
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(digest[:15]))
}

// sign returns all headers of a request, signed as its provider would at a time.
func (s *sampler) sign(ev sample, url string, key signature.Key, at time.Time) (map[string]string, error) {
	signed, err := s.adapter.Scheme.Sign(signature.Request{Method: "POST", URL: url, Header: ev.header, Body: ev.body}, key, at)
	if err != nil {
		return nil, err
	}
	header := map[string]string{}
	for name, value := range ev.header {
		header[name] = value
	}
	for name, value := range signed {
		header[name] = value
	}
	return header, nil
}
