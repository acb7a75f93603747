package partition

// heap holds vertices by a changeable key, the largest on top; the order of equal keys
// depends only on the operations on the heap. A vertex is in it at most once.
type heap struct {
	list []uint32
	at   []int32   // by vertex: position in list plus one; 0 if it is not in the heap
	key  []float64 // by vertex
}

func newHeap(vertices int) *heap {
	return &heap{list: make([]uint32, 0, vertices), at: make([]int32, vertices), key: make([]float64, vertices)}
}

func (h *heap) has(v uint32) bool { return h.at[v] != 0 }

// put adds v, or changes its key.
func (h *heap) put(v uint32, key float64) {
	if h.at[v] == 0 {
		h.list = append(h.list, v)
		h.key[v] = key
		h.up(len(h.list)-1, v)
		return
	}
	old := h.key[v]
	h.key[v] = key
	if key > old {
		h.up(int(h.at[v]-1), v)
	} else if key < old {
		h.down(int(h.at[v]-1), v)
	}
}

// pop removes the vertex with the largest key; the heap must not be empty.
func (h *heap) pop() (uint32, float64) {
	top := h.list[0]
	h.remove(top)
	return top, h.key[top]
}

func (h *heap) remove(v uint32) {
	i := int(h.at[v] - 1)
	h.at[v] = 0
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	if last == v {
		return
	}
	if h.key[last] > h.key[v] {
		h.up(i, last)
	} else {
		h.down(i, last)
	}
}

func (h *heap) clear() {
	for _, v := range h.list {
		h.at[v] = 0
	}
	h.list = h.list[:0]
}

func (h *heap) up(i int, v uint32) {
	for i > 0 {
		parent := (i - 1) / 2
		p := h.list[parent]
		if h.key[p] >= h.key[v] {
			break
		}
		h.list[i], h.at[p] = p, int32(i+1)
		i = parent
	}
	h.list[i], h.at[v] = v, int32(i+1)
}

func (h *heap) down(i int, v uint32) {
	for {
		child := 2*i + 1
		if child >= len(h.list) {
			break
		}
		if child+1 < len(h.list) && h.key[h.list[child+1]] > h.key[h.list[child]] {
			child++
		}
		c := h.list[child]
		if h.key[v] >= h.key[c] {
			break
		}
		h.list[i], h.at[c] = c, int32(i+1)
		i = child
	}
	h.list[i], h.at[v] = v, int32(i+1)
}
