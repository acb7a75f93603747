#include "textflag.h"

// func prefetch(base unsafe.Pointer, at *uint32, n int, shift uint)
TEXT ·prefetch(SB), NOSPLIT, $0-32
	MOVQ base+0(FP), DI
	MOVQ at+8(FP), SI
	MOVQ n+16(FP), DX
	MOVQ shift+24(FP), CX
	LEAQ (SI)(DX*4), DX
	CMPQ SI, DX
	JGE  done

next:
	MOVL (SI), AX
	SHLQ CX, AX
	PREFETCHT1 (DI)(AX*1)
	ADDQ $4, SI
	CMPQ SI, DX
	JLT  next

done:
	RET
