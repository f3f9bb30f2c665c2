package capacity

import "math"

// Report is what a load asks for.
type Report struct {
	Load Load
	// Region's prices were used.
	Region    string
	Work      []Work
	Write     float64 // units an event
	Read      float64
	Tables    []TableLoad
	Functions []Function
	CPU       []CPU
	Calls     []Calls
	Stored    []Stored
	Bursts    []Burst
	Quotas    []Quota
	Costs     []Cost
}

// TableLoad is a table's peak.
type TableLoad struct {
	Table Table
	// Units a second at the peak; Write holds Index.
	Write, Index, Read float64
	// Warm and WarmIndex are what to prepare the table and its indexes for, in write
	// units a second; 0 where new ones bear the peak as they are. An index is counted
	// as if all of the table's were one.
	Warm, WarmIndex float64
}

// Function is a Lambda function at the peak.
type Function struct {
	Name             string
	MemoryMB         float64
	Invocations      float64 // a second
	MS               float64 // an invocation, assumed
	Concurrency      float64
	GBSecondsPerUnit float64 // for one new event
	perEvent         float64 // invocations for one new event
}

// CPU is processor time.
type CPU struct {
	What   string
	Micros float64 // for one
	Cores  float64 // at the peak
	Note   string
}

// Calls are requests to a service.
type Calls struct {
	What      string
	PerSecond float64 // at the peak
	PerMonth  float64
	Note      string
}

// Stored is what is kept.
type Stored struct {
	What string
	GB   float64 // once the days are over for which it is kept
	Days float64
}

// Burst is how long something takes that is not there at once.
type Burst struct {
	What    string
	Seconds float64
	Note    string
}

// Quota is a bound of the account's.
type Quota struct {
	What          string
	Default, Need float64
	Raise         bool
	URL           string
}

// Cost is a line of the bill.
type Cost struct {
	What                string
	PerMillion, Monthly float64 // dollars
}

// Total adds up the bill.
func (r Report) Total() Cost {
	t := Cost{What: "total"}
	for _, c := range r.Costs {
		t.PerMillion += c.PerMillion
		t.Monthly += c.Monthly
	}
	return t
}

// The month of the bill, and decimal gigabytes.
const (
	monthSeconds = 30 * 24 * 3600
	gb           = 1e9
	million      = 1e6
)

// Estimate computes the report. The load must pass [Load.Check].
func Estimate(l Load, p Prices) Report {
	r := Report{Load: l, Region: p.Region, Work: l.used()}
	r.Write, r.Read = l.PerEvent()
	r.Tables = l.tables()
	r.Functions = l.functions()
	r.CPU = l.cpu()
	r.Calls = l.calls(r.Functions)
	r.Stored = l.stored()
	r.Bursts = l.bursts(r.Functions)
	r.Quotas = l.quotas(r)
	r.Costs = l.costs(r, p)
	return r
}

// used leaves out the work that this load does not have.
func (l Load) used() []Work {
	var all []Work
	for _, w := range l.Work() {
		if w.Times > 0 {
			all = append(all, w)
		}
	}
	return all
}

// A new table bears this many write units a second; what is prepared is rounded up.
const (
	newTable = 4000
	warmStep = 1000
)

func warm(units float64) float64 {
	if units <= newTable {
		return 0
	}
	return math.Ceil(units/warmStep) * warmStep
}

func (l Load) tables() []TableLoad {
	var all []TableLoad
	for _, t := range Tables() {
		x := TableLoad{Table: t}
		for _, w := range l.Work() {
			if w.Table == t {
				x.Write += w.Write * w.Times * l.RPS
				x.Index += w.Index * w.Times * l.RPS
				x.Read += w.Read * w.Times * l.RPS
			}
		}
		x.Warm, x.WarmIndex = warm(x.Write-x.Index), warm(x.Index)
		if x.Write > 0 {
			all = append(all, x)
		}
	}
	return all
}

// The template's memory sizes, and the dispatcher's own time beside the partner's.
const (
	bigMB, smallMB = 512, 256
	dispatchMS     = 40
	reconcileMS    = 5000
)

// functions are the stack's, at the peak. A batch of deliveries is sent at once, so
// that it takes as long as its slowest.
func (l Load) functions() []Function {
	deliveries := l.Subscriptions * (1 + l.RetryRatio)
	told := min(1, l.Subscriptions)
	all := []Function{
		{Name: "ingress", MemoryMB: bigMB, MS: l.IngressMS, perEvent: 1 + l.Copies},
		{Name: "relay", MemoryMB: smallMB, MS: l.RelayMS, perEvent: (1 + l.RetryRatio + told) / l.StreamBatch},
		{Name: "processor", MemoryMB: bigMB, MS: l.ProcessMS, perEvent: (1 + l.RetryRatio) / l.QueueBatch},
	}
	if l.Subscriptions > 0 {
		all = append(all, Function{Name: "dispatcher", MemoryMB: bigMB, MS: l.PartnerMS + dispatchMS, perEvent: (told + deliveries) / l.QueueBatch})
	}
	for i, f := range all {
		all[i].Invocations = f.perEvent * l.RPS
		all[i].Concurrency = math.Ceil(all[i].Invocations * f.MS / 1000)
		all[i].GBSecondsPerUnit = f.perEvent * f.MS / 1000 * f.MemoryMB / kib
	}
	return all
}

// What was measured on one x86 core of a busy machine, for 10 KiB: the whole of
// ingress but TLS, HMAC-SHA256, AES-GCM, and a handshake of TLS 1.3 with P-256,
// both sides of it; and how much smaller zstd makes the payment of the benchmark.
const (
	ingressMicros       = 430
	hmacMicros          = 16
	gcmMicros           = 3.5
	handshakeMicros     = 1100
	measuredKiB         = 10
	measuredCompression = 4.2
	coreMB              = 1769 // memory at which Lambda gives a whole core
)

func (l Load) cpu() []CPU {
	size := l.BodyKiB / measuredKiB
	requests := l.RPS * (1 + l.Copies)
	all := []CPU{
		{"ingress, a request", ingressMicros * max(1, size), 0, "measured without TLS; grows with the body"},
		{"of it HMAC-SHA256 of the body", hmacMicros * size, 0, "measured"},
		{"TLS records to AWS, a request", gcmMicros * size / l.Compression, 0, "measured AES-GCM; connections are kept"},
	}
	for i := range all {
		all[i].Cores = all[i].Micros * requests / million
	}
	if l.Subscriptions > 0 {
		all = append(all, CPU{
			"TLS handshake with a partner, a delivery", handshakeMicros, handshakeMicros * l.RPS * l.Subscriptions * (1 + l.RetryRatio) / million,
			"measured, both sides; the most it can be: connections are kept",
		})
	}
	return all
}

func (l Load) stored() []Stored {
	day := l.average() * 24 * 3600
	of := func(what string, bytes, days float64) Stored { return Stored{what, bytes * day * days / gb, days} }
	all := []Stored{of("bodies, table", l.rowBytes(), l.BodyDays)}
	if l.inBucket() {
		all = append(all, of("bodies, bucket", l.sealedBytes(), l.BodyDays))
	}
	all = append(all,
		of("inbox rows and index", stateBytes+indexBytes, l.InboxDays),
		of("marks", markBytes, l.InboxDays+30),
		of("business rows", l.BusinessRows*businessBytes, l.BusinessMonths*30),
	)
	if l.Subscriptions > 0 {
		all = append(all,
			of("effects, table", l.EffectKiB*kib/l.Compression+bodyRowBytes, l.BodyDays),
			of("deliveries and index", l.Subscriptions*(deliveryBytes+indexBytes), deliveryDays),
			of("attempts", l.Subscriptions*(1+l.RetryRatio)*(attemptBytes+answerBytes), attemptDays))
	}
	return all
}

// Sizes of rows, measured, each with the 100 bytes that DynamoDB counts beside it. A
// test holds them to what is stored.
const (
	stateBytes    = 360 + 100
	indexBytes    = 100 + 100
	markBytes     = 90 + 100
	businessBytes = 170 + 100
	deliveryBytes = 400 + 100
	attemptBytes  = 110 + 100
	answerBytes   = 300 // of a partner's answer that is kept, assumed
	deliveryDays  = 90
	attemptDays   = 180
)

// Month is how many new events a month has.
func (r Report) Month() float64 { return r.Load.average() * monthSeconds }
