package main

// handles lists the opaque pointer types.
var handles = []string{
	"CUarray", "CUcontext", "CUevent", "CUfunction", "CUgraph", "CUgraphExec", "CUgraphNode", "CUkernel",
	"CUlinkState", "CUmodule", "CUstream", "CUsurfref", "CUtexref",
}

// alias is a typedef of a C type. %s marks where the new name goes if it is in the
// middle.
type alias struct{ name, is string }

var aliases = []alias{
	{"CUdevice", "int %s"},
	{"CUdeviceptr", "unsigned long long %s"},
	{"cuuint32_t", "uint32_t %s"},
	{"CUhostFn", "void (*%s)(void *)"},
}

// structure is a struct with its fields in order.
type structure struct {
	name   string
	fields []field
}

type field struct{ kind, name string }

var structures = []structure{
	{"CUuuid", []field{{"char", "bytes[16]"}}},
	{"CUDA_ARRAY_DESCRIPTOR", []field{
		{"size_t", "Width"}, {"size_t", "Height"},
		{"CUarray_format", "Format"}, {"unsigned int", "NumChannels"},
	}},
	{"CUDA_ARRAY3D_DESCRIPTOR", []field{
		{"size_t", "Width"}, {"size_t", "Height"}, {"size_t", "Depth"},
		{"CUarray_format", "Format"}, {"unsigned int", "NumChannels"}, {"unsigned int", "Flags"},
	}},
	{"CUDA_MEMCPY2D", []field{
		{"size_t", "srcXInBytes"}, {"size_t", "srcY"},
		{"CUmemorytype", "srcMemoryType"}, {"const void *", "srcHost"}, {"CUdeviceptr", "srcDevice"}, {"CUarray", "srcArray"},
		{"size_t", "srcPitch"},
		{"size_t", "dstXInBytes"}, {"size_t", "dstY"},
		{"CUmemorytype", "dstMemoryType"}, {"void *", "dstHost"}, {"CUdeviceptr", "dstDevice"}, {"CUarray", "dstArray"},
		{"size_t", "dstPitch"},
		{"size_t", "WidthInBytes"}, {"size_t", "Height"},
	}},
	{"CUDA_MEMCPY3D", copy3D("void *", "reserved0", "reserved1")},
	{"CUDA_MEMCPY3D_PEER", copy3D("CUcontext", "srcContext", "dstContext")},
	{"CUDA_MEMSET_NODE_PARAMS", []field{
		{"CUdeviceptr", "dst"}, {"size_t", "pitch"}, {"unsigned int", "value"}, {"unsigned int", "elementSize"},
		{"size_t", "width"}, {"size_t", "height"},
	}},
	{"CUDA_HOST_NODE_PARAMS", []field{{"CUhostFn", "fn"}, {"void *", "userData"}}},
	{"CUDA_KERNEL_NODE_PARAMS", []field{
		{"CUfunction", "func"},
		{"unsigned int", "gridDimX"}, {"unsigned int", "gridDimY"}, {"unsigned int", "gridDimZ"},
		{"unsigned int", "blockDimX"}, {"unsigned int", "blockDimY"}, {"unsigned int", "blockDimZ"},
		{"unsigned int", "sharedMemBytes"}, {"void **", "kernelParams"}, {"void **", "extra"},
		{"CUkernel", "kern"}, {"CUcontext", "ctx"},
	}},
}

// copy3D returns the fields of a copy between boxes. The two kinds, within a context and
// between contexts, differ in one field per side.
func copy3D(kind, source, destination string) []field {
	return []field{
		{"size_t", "srcXInBytes"}, {"size_t", "srcY"}, {"size_t", "srcZ"}, {"size_t", "srcLOD"},
		{"CUmemorytype", "srcMemoryType"}, {"const void *", "srcHost"}, {"CUdeviceptr", "srcDevice"}, {"CUarray", "srcArray"},
		{kind, source}, {"size_t", "srcPitch"}, {"size_t", "srcHeight"},
		{"size_t", "dstXInBytes"}, {"size_t", "dstY"}, {"size_t", "dstZ"}, {"size_t", "dstLOD"},
		{"CUmemorytype", "dstMemoryType"}, {"void *", "dstHost"}, {"CUdeviceptr", "dstDevice"}, {"CUarray", "dstArray"},
		{kind, destination}, {"size_t", "dstPitch"}, {"size_t", "dstHeight"},
		{"size_t", "WidthInBytes"}, {"size_t", "Height"}, {"size_t", "Depth"},
	}
}
