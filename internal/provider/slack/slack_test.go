package slack_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/provider/providertest"
	"dakghar/internal/provider/slack"
	"dakghar/internal/signature"
)

func suite() providertest.Suite {
	return providertest.Suite{
		Current: "current secret of the suite", Previous: "previous secret of the suite", Other: "other secret of the suite",
		Type: "message",
		NotSecrets: map[string]error{
			"short": signature.ErrSecretTooShort, "8f742231b10e8888abcd99yyyzzz85a5": signature.ErrSecretPublished, "xoxb-0123456789": signature.ErrSecretForeign,
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	providertest.Run(t, slack.Adapter(), suite())
}

// Proves P5 for Slack's handshake: a signed body in exactly the documented
// shape is answered with its challenge, and nothing else is.
func TestHandshake(t *testing.T) {
	t.Parallel()
	a := slack.Adapter()
	for _, tt := range []struct {
		name, body string
		want       provider.Envelope
		code       string
	}{
		{"the documented shape", `{"token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}`,
			provider.Envelope{Handshake: &provider.Answer{
				Status: 200, ContentType: "text/plain; charset=utf-8", Body: []byte("3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"),
			}}, ""},
		{"a member more", `{"token":"x","challenge":"abc","type":"url_verification","event":{}}`, provider.Envelope{}, provider.CodeHandshake},
		{"a member fewer", `{"challenge":"abc","type":"url_verification"}`, provider.Envelope{}, provider.CodeHandshake},
		{"no challenge", `{"token":"x","type":"url_verification"}`, provider.Envelope{}, provider.CodeHandshake},
		{"an empty challenge", `{"token":"x","challenge":"","type":"url_verification"}`, provider.Envelope{}, provider.CodeHandshake},
		{"a challenge that is no text", `{"token":"x","challenge":{"a":"b"},"type":"url_verification"}`, provider.Envelope{}, provider.CodeHandshake},
		{"a challenge that is markup", `{"token":"x","challenge":"<script>","type":"url_verification"}`, provider.Envelope{}, provider.CodeHandshake},
		{"a challenge that is an address", `{"token":"x","challenge":"https://example.com","type":"url_verification"}`, provider.Envelope{}, provider.CodeHandshake},
		{"a challenge that could be signed text", `{"token":"x","challenge":"v0:1750000000:x","type":"url_verification"}`, provider.Envelope{}, provider.CodeHandshake},
		{"a challenge of two lines", `{"token":"x","challenge":"a\nb","type":"url_verification"}`, provider.Envelope{}, provider.CodeHandshake},
		{"a challenge longer than any", `{"token":"x","challenge":"` + strings.Repeat("a", 257) + `","type":"url_verification"}`, provider.Envelope{}, provider.CodeHandshake},
		{"a challenge in an event", `{"token":"x","challenge":"abc","type":"event_callback"}`, provider.Envelope{}, provider.CodeNoID},
		{"two challenges", `{"token":"x","challenge":"abc","Challenge":"def","type":"url_verification"}`, provider.Envelope{}, provider.CodeAmbiguous},
		{"a rate limit, which has no id", `{"token":"x","type":"app_rate_limited","team_id":"T1","minute_rate_limited":1518467820}`, provider.Envelope{}, provider.CodeUnexpected},
		{"no type", `{"token":"x","challenge":"abc"}`, provider.Envelope{}, provider.CodeUnexpected},
	} {
		got, err := a.Envelope(nil, []byte(tt.body))
		if tt.code != "" {
			got = provider.Envelope{} // the error is the answer
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || providertest.Code(t, err) != tt.code {
			t.Errorf("%s: %v, want %q\n%s", tt.name, err, tt.code, diff)
		}
	}
}

// The vector of an event is read whole.
func TestTheEventOfTheVectorIsRead(t *testing.T) {
	t.Parallel()
	a := slack.Adapter()
	for _, v := range providertest.Vectors(t) {
		if v.Name != "self-event-callback" {
			continue
		}
		got, err := a.Envelope(v.Headers, []byte(v.BodyUTF8))
		want := provider.Envelope{EventID: "Ev08MFMKH6", Type: "message", ObjectID: "T1", CreatedAt: time.Unix(1750000000, 0).UTC()}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		return
	}
	t.Fatal("the vector is gone")
}
