package limit

import "time"

// bucket is a token bucket in thousandths of a request, which at a whole number
// of requests a second refill it by a whole number each millisecond.
type bucket struct {
	level int64
	at    time.Time
}

func fullBucket(burst int, now time.Time) bucket { return bucket{int64(burst) * 1000, now} }

// refill fills up to burst by what time brought. A clock that went back brings nothing.
func (b *bucket) refill(rate, burst int, now time.Time) {
	full := int64(burst) * 1000
	elapsed := now.Sub(b.at).Milliseconds()
	switch {
	case elapsed < 0:
		b.at = now
	case elapsed > (full-b.level)/int64(rate):
		b.level, b.at = full, now
	default:
		b.level += elapsed * int64(rate)
		b.at = b.at.Add(time.Duration(elapsed) * time.Millisecond)
	}
}

func (b *bucket) holds() bool { return b.level >= 1000 }

func (b *bucket) take() { b.level -= 1000 }

// wait is how long it takes until the bucket holds one request.
func (b *bucket) wait(rate int) time.Duration {
	return time.Duration((1000-b.level+int64(rate)-1)/int64(rate)) * time.Millisecond
}
