package s3

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// store is the memory of gofakes3 with puts that replace. A put into s3mem adds
// its metadata to that of the object it overwrites, and keeps every header of
// the request; so the old object is removed first, and readers wait meanwhile.
type store struct {
	*s3mem.Backend
	mu sync.RWMutex // held for writing while an object is replaced
}

// kept are the headers of a put that come back with the object, beside those
// with the prefix of metadata and of checksums.
var kept = []string{"Content-Type", "Content-Encoding", "Content-Disposition", "Last-Modified", sse, sseKey, sseBucketKey}

// PutObject replaces an object, or refuses when a condition does not hold.
func (s *store) PutObject(bucket, key string, meta map[string]string, body io.Reader, size int64, conditions *gofakes3.PutConditions) (gofakes3.PutObjectResult, error) {
	content, err := gofakes3.ReadAll(body, size)
	if err != nil {
		return gofakes3.PutObjectResult{}, err
	}
	meta = maps.Clone(meta)
	maps.DeleteFunc(meta, func(name, _ string) bool {
		return !slices.Contains(kept, name) && !strings.HasPrefix(name, metaPrefix) && !strings.HasPrefix(name, checksumPrefix)
	})

	s.mu.Lock()
	defer s.mu.Unlock()
	if conditions != nil {
		_, err := s.Backend.HeadObject(bucket, key)
		if err := gofakes3.CheckPutConditions(conditions, &gofakes3.ConditionalObjectInfo{Exists: err == nil}); err != nil {
			return gofakes3.PutObjectResult{}, err
		}
	}
	if _, err := s.Backend.DeleteObject(bucket, key); err != nil {
		return gofakes3.PutObjectResult{}, err
	}
	return s.Backend.PutObject(bucket, key, meta, bytes.NewReader(content), size, nil)
}

// GetObject reads an object, never in the middle of being replaced. A part comes
// without the checksum, which is that of the whole.
func (s *store) GetObject(bucket, key string, part *gofakes3.ObjectRangeRequest) (*gofakes3.Object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	object, err := s.Backend.GetObject(bucket, key, part)
	if err == nil && part != nil {
		object.Metadata = maps.Clone(object.Metadata)
		maps.DeleteFunc(object.Metadata, func(name, _ string) bool { return strings.HasPrefix(name, checksumPrefix) })
	}
	return object, err
}

// HeadObject reads what is known about an object.
func (s *store) HeadObject(bucket, key string) (*gofakes3.Object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.Backend.HeadObject(bucket, key)
}
