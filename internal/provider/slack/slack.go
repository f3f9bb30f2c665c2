// Package slack receives the Events API of Slack as account notices.
//
// # Signature
//
// X-Slack-Signature is "v0=" and the hexadecimal HMAC-SHA256 of
// "v0:<X-Slack-Request-Timestamp>:<body>" under the app's signing secret, which
// looks hexadecimal and is taken as text. Slack asks for a window of five
// minutes; we keep it in both directions.
//
// It covers id (event_id), type and the request's time.
//
// # Handshake
//
// Slack proves an address with a signed body of type url_verification. It is
// answered with its challenge only in exactly the documented shape, three
// members, and only after its signature was checked.
//
// # Redelivery
//
// Slack tries three more times: at once, after one minute and after five, with
// X-Slack-Retry-Num and X-Slack-Retry-Reason, which are not signed and not read.
// An app can opt in to hourly tries for a day. The event_id stays; it is unique
// over all workspaces. Whether a retry has a fresh timestamp is not stated; if
// not, the one after five minutes is refused as stale, and so the first ones
// must do. There is no manual redelivery.
//
// # Order
//
// None. event_time has a resolution of one second.
//
// # Addresses
//
// Slack publishes none, and says that none are guaranteed.
//
// # What is refused
//
// Slash commands and interactivity come as forms without an event id, so they
// are no events here, though their signature is the same. app_rate_limited has
// no event id either.
//
// # Sources
//
// docs.slack.dev/authentication/verifying-requests-from-slack,
// docs.slack.dev/apis/events-api, docs.slack.dev/reference/events;
// github.com/slackapi/python-slack-sdk tests/slack_sdk/signature;
// github.com/slackapi/python-slack-events-api issue 92 (addresses).
package slack

import (
	_ "embed"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

//go:embed samples/event.json
var event []byte

// tolerance is what Slack's documentation asks for.
const tolerance = 5 * time.Minute

// Adapter returns the adapter.
func Adapter() *provider.Adapter {
	return &provider.Adapter{
		Name: "slack", Title: "Slack",
		Scheme: &signature.Scheme{
			Methods: []signature.Method{{Algorithm: signature.HMACSHA256, Key: signature.KeyRule{
				Encoding: signature.Text, BytesMin: 8,
				Foreign: []string{"xoxb-", "xoxp-", "xapp-", "xoxe"},
			}}},
			Message: []signature.Part{
				signature.Literal("v0:"), signature.SignedTime(), signature.Literal(":"), signature.RawBody(),
			},
			Signature: signature.Place{Header: "x-slack-signature", Grammar: signature.Plain, Prefix: "v0=", Encoding: signature.Hex},
			Timestamp: signature.Timestamp{Header: "x-slack-request-timestamp", Unit: signature.Seconds, Past: tolerance, Future: tolerance},
		},
		BodyBytesMax: provider.BodyBytesMax,
		ContentTypes: []string{"application/json"},
		SuccessCode:  200,
		ID:           []provider.Source{{Parts: []provider.Place{{Path: "event_id"}}, Signed: true}},
		Type:         provider.Source{Parts: []provider.Place{{Path: "event.type"}}, Signed: true},
		Created:      []string{"event_time"},
		ObjectID:     []string{"team_id", "enterprise_id"},
		Shape:        []provider.Check{provider.Is("type", "event_callback")},
		Covers:       provider.Covers{ID: true, Type: true, Time: true},
		BodyVaries:   provider.Unknown,
		Catalogue:    catalogue(),
		Handshake: &provider.Handshake{
			When: provider.Is("type", "url_verification"), Members: []string{"token", "challenge", "type"}, Echo: "challenge",
		},
		Redelivery: provider.Redelivery{
			Automatic:    "3 more times: at once, after 1 min, after 5 min; opt-in: hourly for 24 h",
			AutomaticFor: 24 * time.Hour, SameIDOnRetry: provider.Stated,
			SameIDOnManual: provider.None,
			Sources: []string{
				"https://docs.slack.dev/apis/events-api",
				"https://docs.slack.dev/authentication/verifying-requests-from-slack",
			},
		},
		Ordering: "None: event_time has a resolution of one second. Notices have no order here.",
		// A new signing secret replaces the old one at once; retries last a day.
		Overlap: 24 * time.Hour,
	}
}

// catalogue maps the events that say something about the workspace and the
// app's place in it to kinds of their own, and what happens inside the workspace
// to one kind. The state of a notice is the event's own name.
func catalogue() map[webhook.EventType]provider.Kind {
	read := &provider.Reading{ID: []string{"team_id", "enterprise_id"}, Sample: event}
	c := map[webhook.EventType]provider.Kind{}
	add := func(name webhook.Kind, types ...webhook.EventType) {
		for _, t := range types {
			c[t] = provider.Kind{Name: name, Object: webhook.Account, Policy: webhook.Monotonic, State: string(t), Read: read}
		}
	}
	add("account.uninstalled", "app_uninstalled", "tokens_revoked")
	add("account.changed", "team_domain_change", "team_rename", "email_domain_changed", "scope_granted", "scope_denied")
	add("account.member_changed", "team_join", "user_change", "user_profile_changed", "user_status_changed")
	add("account.noticed",
		"app_home_opened", "app_mention", "channel_archive", "channel_created", "channel_deleted", "channel_left", "channel_rename",
		"channel_unarchive", "emoji_changed", "file_change", "file_created", "file_deleted", "file_public", "file_shared",
		"file_unshared", "group_archive", "group_deleted", "group_left", "group_rename", "group_unarchive", "link_shared",
		"member_joined_channel", "member_left_channel", "message", "pin_added", "pin_removed", "reaction_added", "reaction_removed",
		"star_added", "star_removed", "subteam_created", "subteam_members_changed", "subteam_updated")
	return c
}
