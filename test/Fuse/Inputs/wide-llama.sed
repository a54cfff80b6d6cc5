# Widens a model of 10 tokens and a vocabulary of 11 to 80 tokens and a vocabulary of 64.
/^\/\//d
s/tensor<2x/tensor<16x/g
s/tensor<10x/tensor<80x/g
s/tensor<8x\(5x4x\|5x5x\|4x5x\)/tensor<64x\1/g
s/output_shape \[2,/output_shape [16,/g
s/\] \[2, 4, 5/] [16, 4, 5/g
s/<11x16xf32>/<64x16xf32>/g
s/<16x11xf32>/<16x64xf32>/g
s/<80x11xf32>/<80x64xf32>/g
s/constant 11 : index/constant 64 : index/
