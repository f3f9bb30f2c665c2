package dynamodb

import (
	"math/big"
	"time"
)

// expiredYearsMax guards against a timestamp in another unit: the service leaves
// items alone whose expiry lies more than five years back.
const expiredYearsMax = 5

func (s *Server) updateTimeToLive(r *reader, w *writer) *apiError {
	table, attribute, enabled := "", "", false
	r.object(func(name string) {
		switch name {
		case "TableName":
			table = r.text()
		case "TimeToLiveSpecification":
			attribute, enabled = readTTL(r)
		default:
			r.unknown("UpdateTimeToLive", name)
		}
	})
	r.end()
	switch {
	case r.err != nil:
		return r.err
	case attribute == "" || len(attribute) > ttlNameMax:
		return invalid("TimeToLiveSpecification.AttributeName must have between 1 and %d characters", ttlNameMax)
	}
	if err := s.setTTL(table, attribute, enabled); err != nil {
		return err
	}
	w.open('{')
	w.name("TimeToLiveSpecification")
	w.open('{')
	w.name("Enabled")
	w.boolean(enabled)
	w.textMember("AttributeName", attribute)
	w.close('}')
	w.close('}')
	return nil
}

func readTTL(r *reader) (attribute string, enabled bool) {
	r.object(func(name string) {
		switch name {
		case "AttributeName":
			attribute = r.text()
		case "Enabled":
			enabled = r.boolean()
		default:
			r.unknown("TimeToLiveSpecification", name)
		}
	})
	return attribute, enabled
}

func (s *Server) setTTL(tableName, attribute string, enabled bool) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.table(tableName)
	if err != nil {
		return err
	}
	switch {
	case enabled && t.ttl == attribute:
		return invalid("TimeToLive is already enabled")
	case t.ttl != "" && t.ttl != attribute:
		return invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttl)
	case !enabled && t.ttl == "":
		return invalid("TimeToLive is already disabled")
	}
	t.ttl = ""
	if enabled {
		t.ttl = attribute
	}
	return nil
}

func (s *Server) describeTimeToLive(r *reader, w *writer) *apiError {
	name, err := readTableName("DescribeTimeToLive", r)
	if err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, err := s.table(name)
	if err != nil {
		return err
	}
	w.open('{')
	w.name("TimeToLiveDescription")
	w.open('{')
	if t.ttl == "" {
		w.textMember("TimeToLiveStatus", "DISABLED")
	} else {
		w.textMember("TimeToLiveStatus", "ENABLED")
		w.textMember("AttributeName", t.ttl)
	}
	w.close('}')
	w.close('}')
	return nil
}

// ExpireNow deletes every item whose time to live has passed by the server's
// clock and returns how many. Nothing expires by itself: the service takes up to
// days, so code that relies on the moment is wrong, and a test decides when it
// happens. The stream shows the deletions as made by the service; nothing is
// billed for them.
func (s *Server) ExpireNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	expired := 0
	for _, name := range sortedKeys(s.tables) {
		if t := s.tables[name]; t.ttl != "" {
			expired += s.expireTable(t)
		}
	}
	return expired
}

func (s *Server) expireTable(t *table) int {
	now := s.now()
	var old []*record
	walk(t.rows, bounds{}, func(r *record) bool {
		if expiredBy(r.item[t.ttl], now) {
			old = append(old, r)
		}
		return true
	})
	for _, r := range old {
		t.replace(r, nil)
		s.record(t, r, nil, true)
	}
	return len(old)
}

// expiredBy judges a time to live: a number of seconds since the epoch.
func expiredBy(v value, now time.Time) bool {
	n, ok := v.(number)
	if !ok {
		return false
	}
	at, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return false
	}
	oldest := now.AddDate(-expiredYearsMax, 0, 0).Unix()
	return at.Cmp(big.NewRat(now.Unix(), 1)) <= 0 && at.Cmp(big.NewRat(oldest, 1)) > 0
}
