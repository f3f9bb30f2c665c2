package provider

import (
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Facts reads an event's body into canonical words. The error is a permanent
// [*fault.Error]: the same bytes will say the same the next time.
func (a *Adapter) Facts(k Kind, t webhook.EventType, body []byte) (webhook.Facts, error) {
	doc, _, err := a.document(body)
	if err != nil {
		return webhook.Facts{}, permanent(err)
	}
	v, err := scan(doc, a.paths())
	if err != nil {
		return webhook.Facts{}, permanent(err)
	}
	if known, ok := a.Kind(t); !ok || known.Name != k.Name {
		return webhook.Facts{}, schema("kind_unknown")
	}
	f := webhook.Facts{ObjectType: k.Object, State: k.State, Credit: k.Credit, CreatedAt: a.created(v)}
	for _, read := range []func(*webhook.Facts, Kind, values) error{readObject, readVersion, readState, readMoney} {
		if err := read(&f, k, v); err != nil {
			return webhook.Facts{}, err
		}
	}
	return f, nil
}

func permanent(err error) error {
	if b, ok := err.(*BadBody); ok { //nolint:errorlint // made in this package, never wrapped
		return schema(b.Code)
	}
	return fault.New(fault.Permanent, "body_unreadable", err)
}

func schema(code string) error { return fault.New(fault.Permanent, code, nil) }

func readObject(f *webhook.Facts, k Kind, v values) error {
	id, ok := objectID(v, k.Read.ID, k.Read.IDPrefix)
	switch {
	case id == "":
		return schema("object_id_missing")
	case !ok:
		return schema("object_id_invalid")
	}
	f.ObjectID = id
	f.ParentID = keptID(v, k.Read.Parent, "")
	return nil
}

// readVersion takes the sender's version, or the round of a recurring life cycle.
func readVersion(f *webhook.Facts, k Kind, v values) error {
	paths, numbered := k.Read.Version, k.Policy == webhook.ByVersion || k.Policy == webhook.BySequence
	if !numbered {
		paths = k.Read.Round
	}
	l := v.first(paths)
	if !l.there() {
		if numbered {
			return schema("version_missing")
		}
		return nil
	}
	n, ok := l.integer()
	if at := timeOf(l); !numbered && l.kind == '"' && at.Unix() > 0 {
		n, ok = at.Unix(), true
	}
	if !ok || n < 0 {
		return schema("version_invalid")
	}
	f.Version, f.HasVersion = n, true
	return nil
}

func readState(f *webhook.Facts, k Kind, v values) error {
	if k.State != "" || len(k.Read.States) == 0 {
		return nil
	}
	rule, ok := k.Read.state(v)
	if !ok {
		return schema("state_unknown")
	}
	f.State, f.Credit = rule.State, rule.Credit
	return nil
}

// readMoney insists on an amount only where the balance depends on it.
func readMoney(f *webhook.Facts, k Kind, v values) error {
	amount, currency, err := k.Read.money(v)
	if err != nil {
		return err
	}
	if currency == "" && f.Credit != 0 {
		if k.Read.Sum == nil {
			return schema("amount_missing")
		}
		// Nothing that counts: the event says nothing about money, nor that the
		// object has come as far as its kind says.
		f.State, f.Credit = "", 0
	}
	f.Amount, f.Currency = amount, currency
	return nil
}
