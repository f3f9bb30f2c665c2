package dynamo

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Stored attribute names are short, because every write of a row pays for its
// names as well. This table is the only place that knows them.
//
//	Inbox   id inbox_id · p provider · e endpoint_id · tn tenant · ei provider_event_id · et event_type
//	        oi object_id · ov object_version · pc provider_created_at · ra received_at · bi raw_payload_ref
//	        bx body_expires_at · dg payload_hash · mv matched_secret_version · sb same_body_as · cw conflict_with
//	        uc uncovered · uw unwanted · st status · oc outcome · f fence · ac attempt_count · rn run · na next_attempt_at
//	        lu lease_until · ci claim_id · le last_error · sl slot of a parked row · pr processed_at · x expires_at (epoch seconds)
//	        ea erased_at · lh under legal hold · rk recent index · fk, fa failed index
//	Outbox  id outbox_id · ii inbox_id · e endpoint_id · tp topic · ca created_at · pa published_at · g generation
//	        du due_at · wa wake_at · w wakes · dk, da due index; of an effect ei et ec eo eb ed ex ea tn as in
//	        deliverycodec.go, and cu how far its fan-out has come
//
// Times are epoch milliseconds, unless the table says seconds.
type attributes = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func ms(t time.Time) types.AttributeValue { return num(t.UnixMilli()) }

func keyOf(k webhook.Key) attributes { return attributes{"pk": str(k.PK), "sk": str(k.SK)} }

func outboxKey(id webhook.OutboxID) attributes { return attributes{"id": str(string(id))} }

func setStr(a attributes, name, value string) {
	if value != "" {
		a[name] = str(value)
	}
}

func setNum(a attributes, name string, value int64) {
	if value != 0 {
		a[name] = num(value)
	}
}

func setMS(a attributes, name string, t time.Time) {
	if !t.IsZero() {
		a[name] = ms(t)
	}
}

// recentKey spreads a day of one endpoint over the index shards.
func recentKey(e webhook.EndpointID, day time.Time, shard int) string {
	return fmt.Sprintf("%s#%s#%d", e, day.UTC().Format("20060102"), shard)
}

func failedKey(shard int) string { return "F#" + strconv.Itoa(shard) }

func dueKey(shard int) string { return "D#" + strconv.Itoa(shard) }

func encodeInbox(r webhook.Inbox) (attributes, error) {
	digest, err := hex.DecodeString(string(r.Digest))
	if err != nil {
		return nil, fmt.Errorf("dynamo: digest of %s: %w", r.ID, err)
	}
	a := attributes{
		"id": str(string(r.ID)),
		"p":  str(string(r.Provider)),
		"e":  str(string(r.Endpoint)),
		"ei": str(string(r.EventID)),
		"ra": ms(r.ReceivedAt),
		"dg": &types.AttributeValueMemberB{Value: digest},
		"st": str(string(r.Status)),
		"f":  num(int64(r.Fence)),
		"ac": num(int64(r.AttemptCount)),
		"rk": str(recentKey(r.Endpoint, r.ReceivedAt, webhook.ShardOf(string(r.ID)))),
	}
	setStr(a, "tn", string(r.Tenant))
	setStr(a, "et", string(r.EventType))
	setStr(a, "oi", r.ObjectID)
	setStr(a, "ov", r.ObjectVersion)
	setMS(a, "pc", r.ProviderCreatedAt)
	setStr(a, "bi", string(r.BodyID))
	setMS(a, "bx", r.BodyExpiresAt)
	setStr(a, "mv", string(r.MatchedVersion))
	setStr(a, "sb", string(r.SameBodyAs))
	setStr(a, "cw", string(r.ConflictWith))
	if r.Uncovered {
		a["uc"] = &types.AttributeValueMemberBOOL{Value: true}
	}
	if r.Unwanted {
		a["uw"] = &types.AttributeValueMemberBOOL{Value: true}
	}
	setNum(a, "hp", int64(r.Hops))
	setStr(a, "oc", string(r.Outcome))
	setNum(a, "rn", int64(r.Run))
	setMS(a, "na", r.NextAttemptAt)
	setMS(a, "lu", r.LeaseUntil)
	setStr(a, "ci", string(r.ClaimID))
	setStr(a, "le", r.LastError)
	setStr(a, "sl", r.Slot.String())
	setMS(a, "pr", r.ProcessedAt)
	if !r.ExpiresAt.IsZero() {
		a["x"] = num(r.ExpiresAt.Unix())
	}
	setMS(a, "ea", r.ErasedAt)
	if r.LegalHold {
		a["lh"] = &types.AttributeValueMemberBOOL{Value: true}
	}
	return a, nil
}

func decodeInbox(a attributes) (webhook.Inbox, error) {
	d := decoder{a: a}
	row := webhook.Inbox{
		ID: webhook.InboxID(d.str("id")), Provider: webhook.Provider(d.str("p")), Endpoint: webhook.EndpointID(d.str("e")),
		Tenant: webhook.Tenant(d.str("tn")), EventID: webhook.EventID(d.str("ei")), EventType: webhook.EventType(d.str("et")),
		ObjectID: d.str("oi"), ObjectVersion: d.str("ov"), ProviderCreatedAt: d.ms("pc"), ReceivedAt: d.ms("ra"),
		BodyID: webhook.BodyID(d.str("bi")), BodyExpiresAt: d.ms("bx"), Digest: webhook.Digest(hex.EncodeToString(d.bytes("dg"))),
		MatchedVersion: webhook.KeyVersion(d.str("mv")), SameBodyAs: webhook.InboxID(d.str("sb")),
		ConflictWith: webhook.InboxID(d.str("cw")), Uncovered: d.flag("uc"), Unwanted: d.flag("uw"), Hops: int(d.num("hp")),
		Status: webhook.Status(d.str("st")), Outcome: webhook.Outcome(d.str("oc")), Fence: webhook.Fence(d.num("f")),
		AttemptCount: int(d.num("ac")), Run: int(d.num("rn")), NextAttemptAt: d.ms("na"), LeaseUntil: d.ms("lu"),
		ClaimID: webhook.ClaimID(d.str("ci")), LastError: d.str("le"), ProcessedAt: d.ms("pr"), ExpiresAt: d.expiry(),
		ErasedAt: d.ms("ea"), LegalHold: d.flag("lh"),
	}
	slot, ok := webhook.ParseSlot(d.str("sl"))
	if row.Slot = slot; !ok {
		d.fail("sl", errors.New("is no slot"))
	}
	if row.ID == "" || row.Status == "" {
		d.fail("id or st", errors.New("absent"))
	}
	return row, d.err
}

func encodeOutbox(o webhook.Outbox) attributes {
	a := attributes{
		"id": str(string(o.ID)),
		"ii": str(string(o.InboxID)),
		"tp": str(string(o.Topic)),
		"ca": ms(o.CreatedAt),
		"g":  num(int64(o.Gen)),
		"du": ms(o.DueAt),
		"wa": ms(o.WakeAt),
		"w":  num(int64(o.Wakes)),
	}
	setStr(a, "e", string(o.Endpoint))
	setMS(a, "pa", o.PublishedAt)
	if o.Effect != nil {
		setEffect(a, *o.Effect)
		setStr(a, "cu", o.Cursor)
	}
	if o.InDueIndex {
		a["dk"] = str(dueKey(webhook.ShardOf(string(o.ID))))
		a["da"] = ms(o.DueAt)
	}
	return a
}

// OutboxOf reads an outbox row from its stored attributes as a stream record
// carries them.
func OutboxOf(item webhook.Item) (webhook.Outbox, error) {
	a := make(attributes, len(item))
	for name, v := range item {
		value, err := encodeValue(v)
		if err != nil {
			return webhook.Outbox{}, err
		}
		a[name] = value
	}
	return decodeOutbox(a)
}

func decodeOutbox(a attributes) (webhook.Outbox, error) {
	d := decoder{a: a}
	row := webhook.Outbox{
		ID: webhook.OutboxID(d.str("id")), InboxID: webhook.InboxID(d.str("ii")), Endpoint: webhook.EndpointID(d.str("e")), Topic: webhook.Topic(d.str("tp")),
		CreatedAt: d.ms("ca"), PublishedAt: d.ms("pa"), Gen: webhook.Fence(d.num("g")),
		DueAt: d.ms("du"), WakeAt: d.ms("wa"), Wakes: int(d.num("w")), InDueIndex: d.str("dk") != "",
	}
	if row.Topic == webhook.TopicEffect {
		effect := d.effect()
		row.Effect, row.Cursor = &effect, d.str("cu")
	}
	if row.ID == "" || row.InboxID == "" {
		d.fail("id or ii", errors.New("absent"))
	}
	return row, d.err
}

func encodeValue(v any) (types.AttributeValue, error) {
	switch v := v.(type) {
	case string:
		return str(v), nil
	case int64:
		return num(v), nil
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}, nil
	case []byte:
		return &types.AttributeValueMemberB{Value: v}, nil
	}
	return nil, fault.New(fault.Permanent, "value_unsupported", fmt.Errorf("a %T cannot be stored", v))
}

func decodeItem(a attributes) (webhook.Item, error) {
	item := make(webhook.Item, len(a))
	for name, value := range a {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			item[name] = v.Value
		case *types.AttributeValueMemberN:
			n, err := strconv.ParseInt(v.Value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("dynamo: attribute %s: %w", name, err)
			}
			item[name] = n
		case *types.AttributeValueMemberBOOL:
			item[name] = v.Value
		case *types.AttributeValueMemberB:
			item[name] = v.Value
		default:
			return nil, fmt.Errorf("dynamo: attribute %s has type %T", name, value)
		}
	}
	return item, nil
}

// decoder reads optional attributes and remembers the first one of a wrong type.
type decoder struct {
	a   attributes
	err error
}

func (d *decoder) fail(name string, err error) {
	if d.err == nil {
		d.err = fault.New(fault.Permanent, "row_malformed", fmt.Errorf("dynamo: attribute %s: %w", name, err))
	}
}

func (d *decoder) str(name string) string {
	switch v := d.a[name].(type) {
	case nil:
	case *types.AttributeValueMemberS:
		return v.Value
	default:
		d.fail(name, fmt.Errorf("is a %T", v))
	}
	return ""
}

func (d *decoder) num(name string) int64 {
	switch v := d.a[name].(type) {
	case nil:
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err != nil {
			d.fail(name, err)
		}
		return n
	default:
		d.fail(name, fmt.Errorf("is a %T", v))
	}
	return 0
}

func (d *decoder) flag(name string) bool {
	v, ok := d.a[name].(*types.AttributeValueMemberBOOL)
	return ok && v.Value
}

func (d *decoder) bytes(name string) []byte {
	v, ok := d.a[name].(*types.AttributeValueMemberB)
	if !ok {
		return nil
	}
	return v.Value
}

func (d *decoder) ms(name string) time.Time {
	if n := d.num(name); n != 0 {
		return time.UnixMilli(n).UTC()
	}
	return time.Time{}
}

// expiry reads when the table forgets a row, in seconds.
func (d *decoder) expiry() time.Time {
	if n := d.num("x"); n != 0 {
		return time.Unix(n, 0).UTC()
	}
	return time.Time{}
}
