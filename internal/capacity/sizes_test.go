package capacity_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/business"
	"dakghar/internal/capacity"
)

// rowBytes is a row's size by DynamoDB's formula, and the 100 bytes beside it.
func rowBytes(row map[string]types.AttributeValue) int {
	const beside = 100
	total := beside
	for name, v := range row {
		total += len(name)
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			total += len(v.Value)
		case *types.AttributeValueMemberB:
			total += len(v.Value)
		case *types.AttributeValueMemberN:
			total += (len(v.Value)+1)/2 + 1
		default:
			total++
		}
	}
	return total
}

// Proves L4: what is said to be stored is not less than what an event leaves in the
// tables, and not much more.
func TestWhatIsStoredIsWhatIsFound(t *testing.T) {
	t.Parallel()
	w := count(t, business.Standard(), 1)
	w.way(1)
	found := map[string]float64{}
	for table, of := range map[string]func(row map[string]types.AttributeValue) string{
		"Inbox":    func(map[string]types.AttributeValue) string { return "inbox rows and index" },
		"Business": businessKind,
		"Delivery": func(row map[string]types.AttributeValue) string {
			if strings.HasPrefix(key(row, "sk"), "attempt#") {
				return "attempts"
			}
			return "deliveries and index"
		},
	} {
		out, err := w.Outside.DB.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("sim-" + table + "Table")})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range out.Items {
			found[of(row)] += float64(rowBytes(row)) / (events + 1)
		}
	}
	// Beside the rows: the indexes' copies, and the beginning of a partner's answer, of
	// which this partner has none.
	for what, bytes := range map[string]float64{"inbox rows and index": 200, "deliveries and index": 200, "attempts": 300} {
		found[what] += bytes
	}
	l := capacity.Defaults()
	l.Subscriptions = 1
	said := map[string]float64{}
	for _, s := range capacity.Estimate(l, capacity.ListPrices()).Stored {
		said[s.What] = s.GB * 1e9 / (l.RPS * 86400 * s.Days)
	}
	for what, bytes := range found {
		if said[what] < bytes || said[what] > 1.15*bytes {
			t.Errorf("%s: %.0f bytes an event are said, %.0f are found", what, said[what], bytes)
		}
	}
	if len(found) != 5 {
		t.Errorf("found %v", found)
	}
}

func businessKind(row map[string]types.AttributeValue) string {
	if strings.HasPrefix(key(row, "pk"), "mark#") || strings.Contains(key(row, "pk"), "#mark#") {
		return "marks"
	}
	return "business rows"
}

func key(row map[string]types.AttributeValue, name string) string {
	s, _ := row[name].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}
