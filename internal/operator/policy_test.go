package operator

import (
	"strings"
	"testing"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// Proves O1's choice per endpoint: a policy is taken only where its evidence is there.
func TestPoliciesAreTakenWhereTheirEvidenceIsThere(t *testing.T) {
	t.Parallel()
	numbered, bare, current := &provider.Reading{Version: []string{"v"}}, &provider.Reading{}, &provider.Current{}
	a := &provider.Adapter{Name: "acme", Catalogue: map[webhook.EventType]provider.Kind{
		"numbered": {Name: "object.numbered", Policy: webhook.ByVersion, Read: numbered},
		"summed":   {Name: "object.summed", Policy: webhook.BySequence, Read: numbered, Delta: true, Current: current},
		"fetched":  {Name: "object.fetched", Policy: webhook.Monotonic, Read: bare, Current: current},
		"stepped":  {Name: "object.stepped", Policy: webhook.Monotonic, Read: bare},
		// Two types of one kind: what one of them lacks, the kind lacks.
		"mixed.a": {Name: "object.mixed", Policy: webhook.Monotonic, Read: numbered, Current: current},
		"mixed.b": {Name: "object.mixed", Policy: webhook.Monotonic, Read: bare, Current: current},
	}}
	api := webhook.Endpoint{API: &webhook.API{Secret: "demo/api"}}
	tests := []struct {
		kind   webhook.Kind
		policy webhook.Policy
		e      webhook.Endpoint
		want   string // a part of what speaks against it; empty if nothing does
	}{
		{"object.numbered", webhook.ByVersion, webhook.Endpoint{}, ""},
		{"object.numbered", webhook.BySequence, webhook.Endpoint{}, ""},
		{"object.numbered", webhook.Monotonic, webhook.Endpoint{}, "nothing monotonic"},
		{"object.numbered", webhook.ByFetch, api, "does not know how to fetch"},
		{"object.summed", webhook.BySequence, webhook.Endpoint{}, ""},
		{"object.summed", webhook.ByVersion, webhook.Endpoint{}, "only sequence keeps them all"},
		{"object.summed", webhook.ByFetch, api, "only sequence keeps them all"},
		{"object.fetched", webhook.ByFetch, api, ""},
		{"object.fetched", webhook.ByFetch, webhook.Endpoint{}, "needs a credential"},
		{"object.fetched", webhook.ByFetch, webhook.Endpoint{API: &webhook.API{}}, "needs a credential"},
		{"object.fetched", webhook.Monotonic, webhook.Endpoint{}, ""},
		{"object.fetched", webhook.ByVersion, webhook.Endpoint{}, "carry no version"},
		{"object.stepped", webhook.BySequence, webhook.Endpoint{}, "carry no number"},
		{"object.stepped", "arrival", webhook.Endpoint{}, "a policy is"},
		{"object.mixed", webhook.ByVersion, webhook.Endpoint{}, "carry no version"},
		{"object.mixed", webhook.ByFetch, api, ""},
		{"object.unheard", webhook.ByVersion, webhook.Endpoint{}, "no such kind"},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind)+" by "+string(tt.policy), func(t *testing.T) {
			t.Parallel()
			got := policyProblem(a, tt.e, tt.kind, tt.policy)
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("says %q, want %q", got, tt.want)
			}
		})
	}
}
