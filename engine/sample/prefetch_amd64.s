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

// func prefetchHashed(base unsafe.Pointer, ids *uint32, n int, factor uint32, shift uint)
TEXT ·prefetchHashed(SB), NOSPLIT, $0-40
	MOVQ base+0(FP), DI
	MOVQ ids+8(FP), SI
	MOVQ n+16(FP), DX
	MOVL factor+24(FP), BX
	MOVQ shift+32(FP), CX
	LEAQ (SI)(DX*4), DX
	CMPQ SI, DX
	JGE  done

next:
	MOVL  (SI), AX
	IMULL BX, AX
	SHRL  CX, AX
	PREFETCHT1 (DI)(AX*8)
	ADDQ  $4, SI
	CMPQ  SI, DX
	JLT   next

done:
	RET
