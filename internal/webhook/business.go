package webhook

// Key addresses a row of the business table.
type Key struct{ PK, SK string }

// Item is a stored row: attribute names to values. A value is a string, an
// int64, a bool or a []byte.
type Item map[string]any

// Tag says what it means when an action's condition is found false.
type Tag int

// The tags.
const (
	// Unchanged guards what the handler read: false means that a rival was
	// faster, and the handler runs again.
	Unchanged Tag = iota + 1
	// Newer guards the order: false means that the event is stale.
	Newer
	// Domain guards a rule of the business: false is told to the handler.
	Domain
)

// Op is what an action does to its row.
type Op int

// The operations.
const (
	Put Op = iota + 1
	Update
	Delete
	Check
)

// Action is one business write, committed together with the processed mark and
// the inbox row's PROCESSED. Build it with [PutItem], [UpdateItem],
// [DeleteItem] or [CheckItem].
type Action struct {
	Op   Op
	Key  Key
	Item Item             // Put: the whole row besides its key. Update: attributes to set.
	Add  map[string]int64 // Update: added to a number, absent counting as 0
	Drop []string         // Update: attributes to remove
	Tag  Tag
	When []Condition // all must hold; none means unconditional
}

// Relation compares a stored attribute with a value.
type Relation int

// The relations.
const (
	Absent   Relation = iota + 1 // the attribute is not there
	Equal                        // it equals the value
	Less                         // it is less than the value
	ElseLess                     // it is not there, or less than the value
)

// Condition is one requirement of an action, on an attribute of its own row.
type Condition struct {
	Attribute string
	Relation  Relation
	Value     any
}

// PutItem writes a whole row.
func PutItem(k Key, item Item) Action { return Action{Op: Put, Key: k, Item: item} }

// UpdateItem sets attributes of a row, which is made if it is not there.
func UpdateItem(k Key, set Item) Action { return Action{Op: Update, Key: k, Item: set} }

// DeleteItem removes a row.
func DeleteItem(k Key) Action { return Action{Op: Delete, Key: k} }

// CheckItem writes nothing and only states conditions.
func CheckItem(k Key) Action { return Action{Op: Check, Key: k} }

// Adding returns a copy of an update that also adds n to a number.
func (a Action) Adding(attribute string, n int64) Action {
	sums := map[string]int64{attribute: n}
	for k, v := range a.Add {
		sums[k] += v
	}
	a.Add = sums
	return a
}

// If returns a copy that also requires the conditions; tag says what it means
// when they do not hold.
func (a Action) If(tag Tag, when ...Condition) Action {
	a.Tag = tag
	a.When = append(append([]Condition(nil), a.When...), when...)
	return a
}

// IfAbsent requires that the row is not there.
func IfAbsent() Condition { return Condition{Attribute: "pk", Relation: Absent} }

// Plan is what a handler decided: how the event ends, and what is written with it.
type Plan struct {
	Outcome Outcome // Applied, Stale or Ignored
	Actions []Action
	// Effects are what others are told, at most [EffectsMax], if the plan is committed.
	Effects []Announcement
}

// ActionsMax bounds a plan: DynamoDB commits at most 100 actions together, and
// ten are kept for the row, its mark and its promises.
const ActionsMax = 90
