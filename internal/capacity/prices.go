package capacity

import (
	"bytes"
	_ "embed" // the list prices
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Price is one list price.
type Price struct {
	ID, What string
	USD      float64 // for Per units
	Per      float64
	Unit     string
	// URL is the page that decides. Via is where the number was taken from, as of
	// Date; "not compared" is a number that everybody quotes and nobody looked up.
	URL, Via, Date string
}

// Prices are a region's.
type Prices struct {
	Region string
	Prices []Price
}

//go:embed us-east-1.json
var listed []byte

// ListPrices returns the prices of us-east-1, without discounts or free tiers.
func ListPrices() Prices {
	p, err := ParsePrices(listed)
	if err != nil {
		panic("capacity: " + err.Error()) // the embedded file is ours
	}
	return p
}

// PricesFile returns the embedded file, to begin another region's with.
func PricesFile() []byte { return bytes.Clone(listed) }

// priced are the prices that a report needs.
var priced = []string{
	"http_api", "lambda_request", "lambda_gb_second", "dynamodb_write", "dynamodb_read", "dynamodb_storage", "dynamodb_backup", "sqs_request", "s3_put",
	"s3_get", "s3_storage", "kms_request", "kms_key", "secret_call", "secret", "log_ingest", "log_storage", "metric", "alarm", "composite_alarm", "dashboard", "insight_rule", "transfer_out", "transfer_region",
}

// ParsePrices reads a file of prices: the one that [PricesFile] returns, with
// another region's numbers. A price that is missing, unknown, negative or without
// a source is an error.
func ParsePrices(raw []byte) (Prices, error) {
	var p Prices
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Prices{}, fmt.Errorf("the prices are not as expected: %w", err)
	}
	var problems, seen []string
	for _, x := range p.Prices {
		switch {
		case !slices.Contains(priced, x.ID):
			problems = append(problems, fmt.Sprintf("%q is no price that is used", x.ID))
		case slices.Contains(seen, x.ID):
			problems = append(problems, x.ID+" is there twice")
		case x.USD < 0 || x.Per <= 0:
			problems = append(problems, x.ID+" needs dollars, and for how many units")
		case x.URL == "" || x.Via == "" || x.Date == "":
			problems = append(problems, x.ID+" does not say where it stands, where it was taken from and when")
		}
		seen = append(seen, x.ID)
	}
	for _, id := range priced {
		if !slices.Contains(seen, id) {
			problems = append(problems, id+" is missing")
		}
	}
	if p.Region == "" {
		problems = append(problems, "the region is missing")
	}
	if len(problems) > 0 {
		return Prices{}, fmt.Errorf("the prices are not as expected: %s", strings.Join(problems, "; "))
	}
	return p, nil
}

// of returns the dollars for one unit.
func (p Prices) of(id string) float64 {
	for _, x := range p.Prices {
		if x.ID == id {
			return x.USD / x.Per
		}
	}
	panic("capacity: no price " + id) // ParsePrices has seen to it
}

// WriteUnit is what a write unit of DynamoDB costs, in dollars.
func (p Prices) WriteUnit() float64 { return p.of("dynamodb_write") }
