package sim

import (
	"bytes"
	"context"
	"crypto/rand"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Grounds lends sets of tables in a DynamoDB outside of this process, such as
// DynamoDB Local. Making tables there takes longer than a whole world lives, so
// a set is emptied and lent again.
type Grounds struct {
	URL string // "http://127.0.0.1:8000"

	mu   sync.Mutex
	free []*ground
}

// ground is one set of tables. Its stream goes on from world to world: where the
// last one ended, the next begins.
type ground struct {
	name   string // of the stack that the tables are named after
	cursor *streamCursor
}

func (g *Grounds) take() *ground {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.free); n > 0 {
		last := g.free[n-1]
		g.free = g.free[:n-1]
		return last
	}
	return &ground{name: "sim-" + strings.ToLower(rand.Text()[:10])}
}

func (g *Grounds) giveBack(one *ground) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free = append(g.free, one)
}

// stand puts the other DynamoDB behind the world's wire.
func (w *World) stand(g *Grounds) {
	w.grounds, w.ground = g, g.take()
	there := &elsewhere{url: strings.TrimRight(g.URL, "/")}
	w.wire.targets["DynamoDB_20120810"], w.wire.targets["DynamoDBStreams_20120810"] = there, there
}

// stackName is what the world's resources are named after.
func (w *World) stackName() string {
	if w.ground == nil {
		return "sim"
	}
	return w.ground.name
}

// Close gives borrowed tables back, empty, for the next world. A world that is
// not closed keeps them to itself.
func (w *World) Close() {
	w.T.Helper()
	if w.ground == nil {
		return
	}
	for _, table := range []string{w.tables.Inbox, w.tables.Outbox, w.tables.Business, w.tables.Registry, w.tables.Delivery, w.bodyTable} {
		w.empty(table)
	}
	w.DropStream()
	cursor := w.cursor
	w.ground.cursor = &cursor
	w.grounds.giveBack(w.ground)
	w.ground = nil
}

// batchWriteMax is the service's limit of writes in one call.
const batchWriteMax = 25

func (w *World) empty(table string) {
	w.T.Helper()
	described, err := w.db.DescribeTable(w.T.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		w.T.Fatal(err)
	}
	var deletes []types.WriteRequest
	for _, item := range w.rows(table) {
		key := map[string]types.AttributeValue{}
		for _, k := range described.Table.KeySchema {
			key[*k.AttributeName] = item[*k.AttributeName]
		}
		deletes = append(deletes, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}})
	}
	for len(deletes) > 0 {
		n := min(len(deletes), batchWriteMax)
		out, err := w.db.BatchWriteItem(w.T.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: deletes[:n]}})
		if err != nil {
			w.T.Fatal(err)
		}
		deletes = append(out.UnprocessedItems[table], deletes[n:]...)
	}
}

// elsewhere hands calls on to another DynamoDB.
type elsewhere struct{ url string }

// expiry is the one call that is not handed on. The other DynamoDB goes by the
// machine's clock, by which a world's rows expired long ago or will not for years.
const expiry = "DynamoDB_20120810.UpdateTimeToLive"

// ServeHTTP implements [http.Handler].
func (e *elsewhere) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, header, body, err := http.StatusOK, http.Header{}, []byte("{}"), error(nil)
	if r.Header.Get("X-Amz-Target") != expiry {
		status, header, body, err = e.call(r.Context(), r)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	// DynamoDB Local leaves it out of its errors, and the SDK complains.
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	w.WriteHeader(status)
	_, _ = w.Write(body) // into memory
}

func (e *elsewhere) call(ctx context.Context, r *http.Request) (int, http.Header, []byte, error) {
	asked, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, nil, nil, err
	}
	out, err := http.NewRequestWithContext(ctx, r.Method, e.url+r.RequestURI, bytes.NewReader(asked)) //nolint:gosec // the address of a test's own database
	if err != nil {
		return 0, nil, nil, err
	}
	for _, name := range []string{"Content-Type", "X-Amz-Target", "X-Amz-Date"} {
		out.Header[name] = r.Header[name]
	}
	// One for all programs: DynamoDB Local may keep tables apart by the access key.
	out.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=local/20260301/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(out) //nolint:gosec // the same
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, body, err
}
