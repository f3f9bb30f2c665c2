package capacity

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Load is the traffic, and what of the stack's settings decides about its cost.
type Load struct {
	// RPS is new events a second at the peak; AverageRPS over the month, which is
	// what is paid for.
	RPS, AverageRPS float64
	BodyKiB         float64
	// Compression is how many times smaller bodies become; InlineKiB the sealed size
	// from which on they go to the bucket (the template's BodyInlineBytes).
	Compression, InlineKiB float64
	// BusinessRows is how many rows of up to 1 KiB the handler writes.
	BusinessRows float64
	// Copies is how many more times a provider sends an event, on average, and
	// RetryRatio how many more times an event or a delivery is tried.
	Copies, RetryRatio float64
	// Subscriptions is how many partners are told of an event.
	Subscriptions, EffectKiB float64
	Endpoints                float64
	// Regions is how many replicas the tables have, this region included.
	Regions float64

	// Times in milliseconds: of ingress for a request, of the relay and the processor
	// for a batch, of a partner for an answer.
	IngressMS, RelayMS, ProcessMS, PartnerMS float64
	// StreamBatch and QueueBatch are how many records and messages come at once.
	StreamBatch, QueueBatch float64

	// Days that bodies, events and logs are kept, and months that business rows pile up.
	BodyDays, InboxDays, LogDays, BusinessMonths float64
}

// Defaults are the template's settings, and what was measured or assumed for the rest.
func Defaults() Load {
	return Load{
		RPS: 100, BodyKiB: 10, Compression: measuredCompression, InlineKiB: 32, BusinessRows: 3,
		EffectKiB: 1, Endpoints: 1, Regions: 1,
		IngressMS: 25, RelayMS: 40, ProcessMS: 60, PartnerMS: 200, StreamBatch: 25, QueueBatch: 5,
		BodyDays: 30, InboxDays: 400, LogDays: 30, BusinessMonths: 12,
	}
}

// The bounds of a load.
const (
	rpsMax      = 1e6
	bodyKiBMax  = 1024 // the front door takes no more
	inlineMax   = 350  // a row of DynamoDB holds 400 KB
	regionsMax  = 10
	ratioMax    = 100
	batchMost   = 100
	queueMost   = 10
	msMax       = 900_000
	daysMax     = 36_500
	partnersMax = 10_000
)

// Check returns everything that is wrong with a load, in the words of the
// command's flags.
func (l Load) Check() error {
	var problems []string
	bound := func(name string, v, least, most float64) {
		if math.IsNaN(v) || v < least || v > most {
			problems = append(problems, fmt.Sprintf("--%s is %g to %g", name, least, most))
		}
	}
	bound("rps", l.RPS, 0.001, rpsMax)
	bound("average-rps", l.AverageRPS, 0, rpsMax)
	bound("body-kib", l.BodyKiB, 0.001, bodyKiBMax)
	bound("compression", l.Compression, 1, ratioMax)
	bound("inline-kib", l.InlineKiB, 0.1, inlineMax)
	bound("business-rows", l.BusinessRows, 0, ratioMax)
	bound("copies", l.Copies, 0, ratioMax)
	bound("retry-ratio", l.RetryRatio, 0, ratioMax)
	bound("subscriptions", l.Subscriptions, 0, partnersMax)
	bound("effect-kib", l.EffectKiB, 0.001, bodyKiBMax)
	bound("endpoints", l.Endpoints, 1, rpsMax)
	bound("regions", l.Regions, 1, regionsMax)
	bound("ingress-ms", l.IngressMS, 0, msMax)
	bound("relay-ms", l.RelayMS, 0, msMax)
	bound("process-ms", l.ProcessMS, 0, msMax)
	bound("partner-ms", l.PartnerMS, 0, msMax)
	bound("stream-batch", l.StreamBatch, 1, batchMost)
	bound("queue-batch", l.QueueBatch, 1, queueMost)
	bound("body-days", l.BodyDays, 1, daysMax)
	bound("inbox-days", l.InboxDays, 1, daysMax)
	bound("log-days", l.LogDays, 1, daysMax)
	bound("business-months", l.BusinessMonths, 0, daysMax)
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// average is the rate that is paid for.
func (l Load) average() float64 {
	if l.AverageRPS > 0 {
		return l.AverageRPS
	}
	return l.RPS
}

const kib = 1024

// What a body's row has beside the bytes: its keys and ids, the seal's nonce and
// tag. A sealed body says in its own bytes how it was sealed.
const bodyRowBytes = 200

// sealedBytes is the size of a body, compressed and sealed.
func (l Load) sealedBytes() float64 { return l.BodyKiB * kib / l.Compression }

// inBucket reports whether bodies of this size go to the bucket.
func (l Load) inBucket() bool { return l.sealedBytes() > l.InlineKiB*kib }

// rowBytes is the size of a body's row.
func (l Load) rowBytes() float64 {
	if l.inBucket() {
		return bodyRowBytes + objectKeyBytes
	}
	return l.sealedBytes() + bodyRowBytes
}

const objectKeyBytes = 120 // bodies/<body id>/<put id>.<random>

// writeUnits and readUnits of a row, as DynamoDB rounds them.
func writeUnits(bytes float64) float64 { return max(1, math.Ceil(bytes/kib)) }
func readUnits(bytes float64) float64  { return max(1, math.Ceil(bytes/(4*kib))) }
