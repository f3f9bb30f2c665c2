package poller

import (
	"bytes"
	"encoding/json"
	"slices"
)

// partial is what a function with ReportBatchItemFailures said of its batch.
type partial struct {
	whole  bool     // all of it failed
	failed []string // identifiers that failed, all of them known
}

// readPartial reads a batch response. Complete success is an empty, null or
// absent list, or an empty or null response. Complete failure is a response that
// is not such a document, an identifier that is empty, null, under a wrong name,
// or not of this batch.
// Source: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
// and services-ddb-batchfailurereporting.html there.
func readPartial(response []byte, known []string) partial {
	response = bytes.TrimSpace(response)
	if len(response) == 0 {
		return partial{}
	}
	// Maps, not structs: encoding/json matches struct fields in any letter case.
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(response, &doc); err != nil {
		return partial{whole: true}
	}
	var items []map[string]json.RawMessage
	if list, ok := doc["batchItemFailures"]; ok {
		if err := json.Unmarshal(list, &items); err != nil {
			return partial{whole: true}
		}
	}
	var p partial
	for _, item := range items {
		var id string
		if err := json.Unmarshal(item["itemIdentifier"], &id); err != nil || !slices.Contains(known, id) {
			return partial{whole: true}
		}
		p.failed = append(p.failed, id)
	}
	return p
}
