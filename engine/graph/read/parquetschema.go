package read

// arrange finds the columns and the levels of their values in the tree.
func (m *parquetMeta) arrange(schema []schemaElement) error {
	if len(schema) == 0 || !schema[0].group {
		return errThrift
	}
	at := 1
	for field := int64(0); field < schema[0].children; field++ {
		if at >= len(schema) {
			return errThrift
		}
		name, first := schema[at].name, len(m.leaves)
		if err := m.descend(schema, &at, parquetLeaf{field: len(m.fields)}, 0); err != nil {
			return err
		}
		f := parquetField{name: name, leaf: -1}
		if len(m.leaves) == first+1 && m.leaves[first].maxRep < 2 {
			f.leaf = first
		}
		m.fields = append(m.fields, f)
	}
	if at != len(schema) {
		return errThrift
	}
	return nil
}

func (m *parquetMeta) descend(schema []schemaElement, at *int, l parquetLeaf, depth int) error {
	if *at >= len(schema) || depth > 32 {
		return errThrift
	}
	e := schema[*at]
	*at++
	switch e.repetition {
	case 0:
	case 1:
		l.maxDef++
	case 2:
		l.maxDef++
		l.maxRep++
		l.list = true
		l.repeated = l.maxDef
	default:
		return errThrift
	}
	if e.group {
		for child := int64(0); child < e.children; child++ {
			if err := m.descend(schema, at, l, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	l.physical, l.length = int(e.physical), int(e.length)
	if e.physical < parquetBoolean || e.physical > parquetFixed || e.length < 0 || e.length > maxLine {
		return errThrift
	}
	l.kind, l.unsigned = e.values()
	m.leaves = append(m.leaves, l)
	return nil
}

// values is what a column can be taken as. Dates, decimals and the like are none of
// it, though they are stored as integers.
func (e *schemaElement) values() (kind valueKind, unsigned bool) {
	switch e.physical {
	case parquetInt32, parquetInt64:
		// Converted types 11 to 14 are unsigned, 15 to 18 signed integers.
		if e.converted >= 0 && (e.converted < 11 || e.converted > 18) && !e.number {
			return otherValues, false
		}
		return intValues, e.unsigned || e.converted >= 11 && e.converted <= 14
	case parquetFloat, parquetDouble:
		return floatValues, false
	case parquetBytes:
		// 0 is UTF-8, 4 an enumeration; some writers leave the type of text away.
		if e.text || e.converted == 0 || e.converted == 4 || e.converted < 0 {
			return textValues, false
		}
	case parquetFixed:
		if e.half && e.length == 2 {
			return floatValues, false
		}
	}
	return otherValues, false
}
