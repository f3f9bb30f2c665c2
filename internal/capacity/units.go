package capacity

// Table is one of the stack's tables.
type Table string

// The tables, in the order in which an event meets them.
const (
	Body     Table = "Body"
	Inbox    Table = "Inbox"
	Outbox   Table = "Outbox"
	Business Table = "Business"
	Delivery Table = "Delivery"
	Registry Table = "Registry"
)

// Tables returns all of them.
func Tables() []Table { return []Table{Body, Inbox, Outbox, Business, Delivery, Registry} }

// Stage is a part of an event's way.
type Stage string

// The stages. Fan-out and attempt are of the outbound half; a retry is one try of
// an event that did not succeed, a copy one more request for an event that is known.
const (
	Accept  Stage = "accept"
	Relay   Stage = "relay"
	Process Stage = "process"
	Effect  Stage = "effect"
	FanOut  Stage = "fan-out"
	Attempt Stage = "attempt"
	Again   Stage = "attempt again"
	Retry   Stage = "retry"
	Copy    Stage = "copy"
)

// Work is what a stage does to one table for one event, delivery, try or copy.
type Work struct {
	Stage Stage
	Table Table
	What  string
	// Write holds Index: units in the table's indexes. A transaction counts twice.
	Write, Index, Read float64
	// Times is how often it is done for one new event.
	Times float64
}

// Work returns everything that DynamoDB is asked for an event, from its request to
// its end. The data key's row, one an hour and process, and the cached reads of
// endpoints and subscriptions are not in it.
func (l Load) Work() []Work {
	body, read := writeUnits(l.rowBytes()), readUnits(l.rowBytes())
	work := []Work{
		{Accept, Body, "put the sealed body, or its key in the bucket", body, 0, 0, 1},
		{Accept, Inbox, "put the row, in the transaction; index recent", 3, 1, 0, 1},
		{Accept, Outbox, "put the promise, in the transaction", 2, 0, 0, 1},
		{Relay, Outbox, "mark it published", 1, 0, 0, 1},
		{Process, Inbox, "claim; complete, in the transaction", 3, 0, 0, 1},
		{Process, Body, "read the body", 0, 0, read, 1},
		{Process, Business, "put the mark and the handler's rows, in the transaction", 2 + 2*l.BusinessRows, 0, 1, 1},
		{Process, Outbox, "delete the promise", 1, 0, 0, 1},
	}
	told := 0.0
	if l.Subscriptions > 0 {
		told = 1
	}
	effect := l.EffectKiB*kib + bodyRowBytes
	work = append(work,
		Work{Effect, Body, "put the effect's bytes", writeUnits(effect / l.Compression), 0, 0, told},
		Work{Effect, Outbox, "put the effect's promise, in the transaction; mark it published", 3, 0, 0, told},
		Work{FanOut, Outbox, "read the promise, delete it", 1, 0, 1, told},
		Work{Attempt, Delivery, "create, claim, record the answer; indexes wake and recent", 14, 5, 1, l.Subscriptions},
		Work{Attempt, Body, "read the effect's bytes", 0, 0, readUnits(effect / l.Compression), l.Subscriptions},
		Work{Again, Delivery, "claim and record one more attempt; index wake", againWrite, againIndex, 1, l.Subscriptions * l.RetryRatio},
		Work{Again, Body, "read the effect's bytes", 0, 0, readUnits(effect / l.Compression), l.Subscriptions * l.RetryRatio},
		Work{Retry, Inbox, "claim; give back, in the transaction", 3, 0, 0, l.RetryRatio},
		Work{Retry, Outbox, "the promise's new time, in the transaction; mark it published", 3, 0, 0, l.RetryRatio},
		Work{Retry, Body, "read the body", 0, 0, read, l.RetryRatio},
		// At a process that does not remember the event; one that does asks nobody.
		Work{Copy, Body, "put, refused", body, 0, 0, l.Copies},
		Work{Copy, Inbox, "read", 0, 0, 1, l.Copies},
	)
	return work
}

// One more attempt of a delivery costs what is counted of a refused one.
const (
	againWrite = 12
	againIndex = 4
)

// PerEvent adds up an event's write and read units.
func (l Load) PerEvent() (write, read float64) {
	for _, w := range l.Work() {
		write += w.Write * w.Times
		read += w.Read * w.Times
	}
	return write, read
}

// Units is what a table is asked for. Write holds Index.
type Units struct{ Write, Index, Read float64 }

// Plus adds.
func (u Units) Plus(v Units) Units {
	return Units{u.Write + v.Write, u.Index + v.Index, u.Read + v.Read}
}

// Minus takes away.
func (u Units) Minus(v Units) Units {
	return Units{u.Write - v.Write, u.Index - v.Index, u.Read - v.Read}
}
