package dynamodb

import "sync"

// Sizes that one capacity unit covers, and limits of a row, a transaction and a
// page, from the DynamoDB developer guide.
const (
	writeUnitBytes      = 1024
	readUnitBytes       = 4096
	itemBytesMax        = 400 * 1024
	transactionBytesMax = 4 * 1024 * 1024
	pageBytesMax        = 1024 * 1024
)

// Units is what a table consumed, by the service's size formula: a write unit per
// started KiB, a read unit per started 4 KiB, half of that for an eventually
// consistent read. A transaction bills its table writes double. Whether the
// index writes it causes are doubled is nowhere stated; they are counted once, as
// indexes are maintained after the commit.
type Units struct {
	Read       float64
	Write      float64 // includes IndexWrite
	IndexWrite float64
}

// Total is reads and writes together.
func (u Units) Total() float64 { return u.Read + u.Write }

func startedUnits(bytes, unit int) float64 {
	return float64(max(1, (bytes+unit-1)/unit))
}

func writeUnits(bytes int) float64 { return startedUnits(bytes, writeUnitBytes) }

// readUnits of a read that found the given bytes; finding nothing costs the
// smallest unit.
func readUnits(bytes int, consistent bool) float64 {
	units := startedUnits(bytes, readUnitBytes)
	if !consistent {
		units /= 2
	}
	return units
}

// cost is what one call consumed of one table.
type cost struct {
	table   float64
	indexes []indexCost
}

type indexCost struct {
	name  string
	units float64
}

func (c *cost) addIndex(name string, units float64) {
	if units == 0 {
		return
	}
	for i := range c.indexes {
		if c.indexes[i].name == name {
			c.indexes[i].units += units
			return
		}
	}
	c.indexes = append(c.indexes, indexCost{name, units})
}

func (c *cost) add(other cost) {
	c.table += other.table
	for _, x := range other.indexes {
		c.addIndex(x.name, x.units)
	}
}

func (c *cost) indexUnits() float64 {
	total := 0.0
	for _, x := range c.indexes {
		total += x.units
	}
	return total
}

// usage adds up costs for tests and the local stack.
type usage struct {
	mu     sync.Mutex
	tables map[string]Units
}

func (u *usage) write(table string, c cost) {
	u.add(table, Units{Write: c.table + c.indexUnits(), IndexWrite: c.indexUnits()})
}

func (u *usage) read(table string, c cost) {
	u.add(table, Units{Read: c.table + c.indexUnits()})
}

func (u *usage) add(table string, more Units) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.tables[table]
	now.Read += more.Read
	now.Write += more.Write
	now.IndexWrite += more.IndexWrite
	u.tables[table] = now
}

// Usage returns what every table consumed since the start or the last
// [Server.ResetUsage], deleted tables included. Failed conditions and cancelled
// transactions are counted: the service bills them too.
func (s *Server) Usage() map[string]Units {
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	out := make(map[string]Units, len(s.usage.tables))
	for name, units := range s.usage.tables {
		out[name] = units
	}
	return out
}

// ResetUsage sets every table's counters to zero.
func (s *Server) ResetUsage() {
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	clear(s.usage.tables)
}

// checkCapacityMode validates ReturnConsumedCapacity.
func checkCapacityMode(mode string) *apiError {
	switch mode {
	case "", "NONE", "TOTAL", "INDEXES":
		return nil
	}
	return invalid("1 validation error detected: Value '%s' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]", mode)
}

func wantsCapacity(mode string) bool { return mode == "TOTAL" || mode == "INDEXES" }

// consumed writes one ConsumedCapacity object. direction is empty except in
// transactions, where the units are named by it as well.
func (w *writer) consumed(table string, c cost, mode, direction string) {
	w.open('{')
	w.textMember("TableName", table)
	w.units("CapacityUnits", c.table+c.indexUnits())
	if direction != "" {
		w.units(direction, c.table+c.indexUnits())
	}
	if mode == "INDEXES" {
		w.name("Table")
		w.unitsObject(c.table, direction)
		if len(c.indexes) > 0 {
			w.name("GlobalSecondaryIndexes")
			w.open('{')
			for _, x := range c.indexes {
				w.name(x.name)
				w.unitsObject(x.units, direction)
			}
			w.close('}')
		}
	}
	w.close('}')
}

func (w *writer) unitsObject(units float64, direction string) {
	w.open('{')
	w.units("CapacityUnits", units)
	if direction != "" {
		w.units(direction, units)
	}
	w.close('}')
}

// units are multiples of a half, so one digit after the point is exact.
func (w *writer) units(name string, units float64) {
	w.name(name)
	w.integer(int(units))
	if units*2 != float64(int(units)*2) {
		w.b = append(w.b, ".5"...)
		return
	}
	w.b = append(w.b, ".0"...)
}
