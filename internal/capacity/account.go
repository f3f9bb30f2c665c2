package capacity

import (
	"fmt"
	"math"
)

// Bytes of log for one event, counted on the lines of an event that succeeds, and
// of API Gateway's own line.
const (
	ingressLog, relayLog, processLog, accessLog = 580, 48, 430, 350
	fanOutLog, attemptLog                       = 400, 430
)

// LogBytes is what an event writes to the logs.
func (l Load) LogBytes() float64 {
	told := min(1, l.Subscriptions)
	return (1+l.Copies)*(ingressLog+accessLog) + relayLog*(1+l.RetryRatio+told) + processLog*(1+l.RetryRatio) +
		told*fanOutLog + l.Subscriptions*(1+l.RetryRatio)*attemptLog
}

// QueueRequests is what an event costs in SQS requests: a message is sent in a batch
// of ten, and received and deleted in the batches that come.
func (l Load) QueueRequests() (messages, requests float64) {
	messages = 1 + l.RetryRatio
	if l.Subscriptions > 0 {
		messages += 1 + l.Subscriptions*(1+l.RetryRatio)
	}
	sent := min(queueMost, l.StreamBatch)
	return messages, messages/sent + 2*messages/l.QueueBatch
}

// Two queues have five pollers each at least, each of which asks every 20 seconds.
const idlePolls = 2 * 5.0 / 20

// secretSeconds is how often a process confirms a key, and hour how long it keeps a
// data key.
const (
	secretSeconds  = 300
	registrySecond = 30
	hour           = 3600
)

func concurrency(all []Function, name string) float64 {
	for _, f := range all {
		if f.Name == name {
			return f.Concurrency
		}
	}
	return 0
}

// calls are the requests to services that are not counted elsewhere. A process asks
// for each endpoint that it has had requests for.
func (l Load) calls(all []Function) []Calls {
	share := l.average() / l.RPS
	of := func(what string, perSecond float64, note string) Calls {
		return Calls{what, perSecond, perSecond * share * monthSeconds, note}
	}
	messages, requests := l.QueueRequests()
	in, work, out := concurrency(all, "ingress"), concurrency(all, "processor"), concurrency(all, "dispatcher")
	met := min(l.Endpoints, max(1, l.RPS*secretSeconds/max(1, in))) // endpoints that one process meets
	queue := of("SQS requests", l.RPS*requests, "")
	queue.PerSecond += idlePolls
	queue.PerMonth += idlePolls * monthSeconds
	queue.Note = fmt.Sprintf("messages an event %.3g, requests %.3g; polls a second while idle %.2g", messages, requests, idlePolls)
	list := []Calls{
		queue,
		of("KMS, data keys", (in+in*(work+out))/hour, "each ingress process makes one an hour, and each worker unwraps all of them, at most"),
		of("Secrets Manager", (in*met+out*l.Subscriptions)/secretSeconds, fmt.Sprintf("ingress processes %.4g, keys that each confirms every 5 minutes %.4g, at most", in, met)),
		of("endpoint rows read", in*met/registrySecond, "every 30 seconds"),
	}
	if l.inBucket() {
		list = append(list, of("S3 PUT", l.RPS, "one a body"), of("S3 GET", l.RPS*(1+l.RetryRatio), "one a try"))
	}
	return list
}

// The stream and the ramps: Lambda adds 1,000 environments each 10 seconds and
// function, a queue's trigger begins with 5 batches and adds 300 a minute, and the
// template's routes let 2,500 requests a second through and 4,000 at once.
const (
	shardUnits     = 1000
	ingressRamp    = 100
	queueBegin     = 5
	queueRamp      = 5
	routeRate      = 2500
	routeBurst     = 4000
	parallelShards = 10
)

// Shards is how many shards the outbox's stream has: one a partition, of which each
// bears 1,000 write units a second, and as many as a new table has at least.
func (l Load) Shards() float64 {
	for _, t := range l.tables() {
		if t.Table == Outbox {
			return max(newTable, t.Warm) / shardUnits
		}
	}
	return newTable / shardUnits
}

func (l Load) bursts(all []Function) []Burst {
	in, work := concurrency(all, "ingress"), concurrency(all, "processor")
	list := []Burst{
		{"until ingress has its environments", in / ingressRamp, fmt.Sprintf("%.4g environments, 1,000 more each 10 s", in)},
		{"until the processor has its batches", max(0, work-queueBegin) / queueRamp, fmt.Sprintf("%.4g batches at once; begins with 5, 300 more a minute; meanwhile events wait in the queue", work)},
	}
	if over := 2*l.RPS - routeRate; over > 0 {
		list = append(list, Burst{"that a route bears twice the peak", routeBurst / over, "RouteBurst 4,000 above RouteRatePerSecond 2,500; then 429"})
	}
	return append(list, Burst{"to double what the tables bear", 30 * 60, "an on-demand table takes twice its earlier peak at once; more than that wants half an hour, or warm throughput"})
}

// The pages that decide about quotas. The defaults are those that were quoted in
// November 2026; an account may have others.
const (
	docs     = "https://docs.aws.amazon.com/"
	apiDocs  = docs + "apigateway/latest/developerguide/http-api-quotas.html"
	dynDocs  = docs + "amazondynamodb/latest/developerguide/ServiceQuotas.html"
	warmDocs = docs + "amazondynamodb/latest/developerguide/warm-throughput.html"
	lamDocs  = docs + "lambda/latest/dg/lambda-concurrency.html"
	sqsDocs  = docs + "AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html"
	kmsDocs  = docs + "kms/latest/developerguide/requests-per-second.html"
	secDocs  = docs + "secretsmanager/latest/userguide/reference_limits.html"
	keyDocs  = docs + "amazondynamodb/latest/developerguide/bp-partition-key-design.html"
)

func (l Load) quotas(r Report) []Quota {
	requests := l.RPS * (1 + l.Copies)
	lambda, perSecond := 0.0, 0.0
	for _, f := range r.Functions {
		lambda += f.Concurrency
		perSecond = max(perSecond, f.Invocations)
	}
	table, own := 0.0, 0.0
	for _, t := range r.Tables {
		table, own = max(table, t.Write), max(own, t.Write-t.Index)
	}
	flying := 0.0
	for _, f := range r.Functions {
		if f.Name == "dispatcher" {
			flying = f.Concurrency * l.QueueBatch
		}
	}
	of := func(what string, has, need float64, url string) Quota { return Quota{what, has, need, need > has, url} }
	return []Quota{
		of("API Gateway requests a second, all APIs", 10_000, requests, apiDocs),
		of("template: RouteRatePerSecond", routeRate, requests, "template.yaml"),
		of("Lambda environments, all functions", 1000, lambda, lamDocs),
		of("Lambda environments for that many requests a second (10 each)", 1000, math.Ceil(perSecond/10), lamDocs),
		of("DynamoDB write units a second that a new table bears", newTable, own, warmDocs),
		of("DynamoDB write units a second, a table and its indexes", 40_000, table, dynDocs),
		of("DynamoDB write units a second of one index key (16 shards)", 1000, l.RPS/16, keyDocs),
		of("SQS messages in flight", 120_000, flying, sqsDocs),
		of("KMS symmetric requests a second (differs by region)", 10_000, r.calls("KMS, data keys"), kmsDocs),
		of("Secrets Manager GetSecretValue a second", 10_000, r.calls("Secrets Manager"), secDocs),
	}
}

func (r Report) calls(what string) float64 {
	for _, c := range r.Calls {
		if c.What == what {
			return c.PerSecond
		}
	}
	return 0
}

// AlarmMetrics is how many metrics the template's alarms look at, each of which is
// billed as an alarm; the rest is what else it watches with. metrics are those that
// a stack with one provider shows, assumed.
const (
	AlarmMetrics    = 69
	CompositeAlarms = 1
	Dashboards      = 1
	InsightRules    = 1
	metrics         = 65
)

// costs is the bill. Monthly costs that no event causes are not in the price of a
// million.
func (l Load) costs(r Report, p Prices) []Cost {
	month := l.average() * monthSeconds / million // in millions of events
	var list []Cost
	each := func(what string, perEvent float64) {
		list = append(list, Cost{what, perEvent * million, perEvent * million * month})
	}
	monthly := func(what string, dollars float64) { list = append(list, Cost{what, dollars / month, dollars}) }

	each("HTTP API", (1+l.Copies)*math.Ceil(l.BodyKiB/512)*p.of("http_api"))
	requests, seconds := 0.0, 0.0
	for _, f := range r.Functions {
		requests, seconds = requests+f.perEvent, seconds+f.GBSecondsPerUnit
	}
	each("Lambda requests", requests*p.of("lambda_request"))
	each("Lambda duration", seconds*p.of("lambda_gb_second"))
	each("DynamoDB writes", r.Write*p.of("dynamodb_write")*l.Regions)
	each("DynamoDB reads", r.Read*p.of("dynamodb_read"))
	monthly("SQS", r.month("SQS requests")*p.of("sqs_request"))
	if l.inBucket() {
		each("S3 requests", p.of("s3_put")+(1+l.RetryRatio)*p.of("s3_get"))
	}
	each("logs", l.LogBytes()/gb*p.of("log_ingest"))
	if l.Subscriptions > 0 {
		each("data to partners", l.Subscriptions*(1+l.RetryRatio)*(l.EffectKiB*kib+headerBytes)/gb*p.of("transfer_out"))
	}
	if l.Regions > 1 {
		each("data between regions", (l.Regions-1)*r.Write*kib/2/gb*p.of("transfer_region"))
	}
	monthly("KMS", r.month("KMS, data keys")*p.of("kms_request")+p.of("kms_key"))
	monthly("Secrets Manager", r.month("Secrets Manager")*p.of("secret_call")+(l.Endpoints+l.Subscriptions)*p.of("secret"))
	monthly("tables' storage and backup", r.inTables()*(p.of("dynamodb_storage")*l.Regions+p.of("dynamodb_backup")))
	if l.inBucket() {
		monthly("bucket", r.inBucket()*p.of("s3_storage"))
	}
	monthly("logs kept", l.LogBytes()*l.average()*86400*l.LogDays/gb*logCompressed*p.of("log_storage"))
	monthly("metrics and alarms", metrics*p.of("metric")+AlarmMetrics*p.of("alarm")+CompositeAlarms*p.of("composite_alarm"))
	monthly("dashboard and insight rule", Dashboards*p.of("dashboard")+InsightRules*p.of("insight_rule"))
	return list
}

const (
	headerBytes   = 1024 // of a delivery
	logCompressed = 0.15 // CloudWatch keeps logs compressed
)

func (r Report) month(what string) float64 {
	for _, c := range r.Calls {
		if c.What == what {
			return c.PerMonth
		}
	}
	return 0
}

func (r Report) inBucket() float64 {
	for _, s := range r.Stored {
		if s.What == "bodies, bucket" {
			return s.GB
		}
	}
	return 0
}

func (r Report) inTables() float64 {
	total := -r.inBucket()
	for _, s := range r.Stored {
		total += s.GB
	}
	return total
}
