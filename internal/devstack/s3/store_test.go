package s3

import (
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// A reader must see the old object or the new one, never neither: a put removes
// the old one first.
func TestReadersNeverMissAnObjectThatIsReplaced(t *testing.T) {
	s := &store{Backend: s3mem.New()}
	if err := s.CreateBucket("b"); err != nil {
		t.Fatal(err)
	}
	put := func() error {
		_, err := s.PutObject("b", "k", map[string]string{"X-Amz-Meta-N": "1"}, strings.NewReader("x"), 1, nil)
		return err
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		defer close(stop)
		for range 5000 {
			if err := put(); err != nil {
				t.Errorf("put: %v", err)
				return
			}
		}
	})
	read := func(name string, read func() (*gofakes3.Object, error)) {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				object, err := read()
				if err != nil || object.Metadata["X-Amz-Meta-N"] != "1" {
					t.Errorf("%s during a put: %v", name, err)
					return
				}
			}
		})
	}
	read("head", func() (*gofakes3.Object, error) { return s.HeadObject("b", "k") })
	read("get", func() (*gofakes3.Object, error) { return s.GetObject("b", "k", nil) })
	group.Wait()
}
