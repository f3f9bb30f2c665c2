package devstack

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// BenchmarkPipeline is the time from a request to the row that the last of three
// functions puts: what the local stack adds to the product's own work.
func BenchmarkPipeline(b *testing.B) {
	s, err := Start(b.Context(), Options{TemplatePath: "testdata/template.yaml", BuildDir: buildDir, HTTPAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Stop)
	db := awsdynamodb.NewFromConfig(s.Config())
	table := s.Declared().Outputs["DoneTable"]
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprintf("row-%d", i)
		res, err := http.Post(s.FrontDoorURL()+"/rows/"+id, "application/json", strings.NewReader("{}"))
		if err != nil {
			b.Fatal(err)
		}
		res.Body.Close()
		for found := false; !found; {
			next := s.services.changed(table)
			out, err := db.GetItem(b.Context(), &awsdynamodb.GetItemInput{TableName: &table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}})
			if err != nil {
				b.Fatal(err)
			}
			if found = out.Item != nil; !found {
				<-next
			}
		}
	}
}
